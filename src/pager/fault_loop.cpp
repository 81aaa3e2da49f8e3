// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/fault_loop.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <chrono>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/system_call.hpp"
#include "os/io_ring.hpp"
#include "os/runtime_threads.hpp"

namespace farheap::pager {

namespace {

constexpr unsigned kMostInFlight = 16;
constexpr unsigned kMostQueues = 16;
constexpr std::uint32_t kFlightPages = 16;  // larger reads are a sweep's: those take so long that waiting costs little
// A read that the kernel did not take at once (it was short of memory) goes with the next look for answers.
constexpr int kLookAgainMs = 10;
constexpr std::chrono::microseconds kLookOut{150};  // for answers, before the leader goes to sleep
constexpr std::chrono::milliseconds kStoreFullWait{500};
constexpr std::chrono::milliseconds kWeighing{100};  // between two looks
constexpr int kReaderRestsMs = 200;                  // without work; then its buffer is given back
constexpr int kEvictorRestsMs = 10;
constexpr int kHelpersRestMs = 1000;  // evictors that are called when they are wanted
constexpr int kStopLooksMs = 20;      // where threads end

// Not the poll() that the program may have.
void sleep_for_any(pollfd* waiting, unsigned count, int milliseconds) {
  (void)base::kernel_answer(SYS_poll, base::word_of(waiting), count, milliseconds, 0, 0, 0);
}

}  // namespace

FaultLoop::FaultLoop(Pager& pager, Backing& backing, KernelView& view, base::RunPage& run_page,
                     FaultLoopOptions options)
    : pager_(pager),
      backing_(backing),
      view_(view),
      run_page_(run_page),
      options_(options),
      observer_(options.observer) {
  assert(options_.queues == view_.queues() && options_.queues <= kMostQueues && std::has_single_bit(options_.queues));
}

FaultLoop::Desk::Desk(unsigned its_number, Backing& backing)
    : number(its_number), reads(backing.reads_in_flight(kMostInFlight)), flights(reads ? kMostInFlight : 0) {
  for (unsigned flight = 0; flight < flights.size(); ++flight) free_numbers.push_back(flight);
}

// Two handlers each: one leads while the other serves what takes long.
unsigned FaultLoop::desks_for(unsigned handlers) const {
  return std::bit_floor(std::clamp(handlers / 2, 1u, options_.queues));
}

Status FaultLoop::start() {
  const std::uint32_t largest = std::max(options_.buffer_pages, kMostInFlight * kFlightPages);
  if (Status made = buffers_.make(options_.most_handlers + options_.readers + options_.queues, largest); !made)
    return made;
  if (options_.can_stop) wake_up_ = eventfd(0, EFD_CLOEXEC);
  if (options_.can_stop && wake_up_ < 0) return fail(errno_error(errno, "cannot start the pager", "eventfd"));
  // All handlers now, though most of them wait: later, pthread_create() could want a lock that the program's thread
  // holds whose fault it is that we should serve.
  handlers_ = 1;
  handlers_made_ = 0;
  desks_.clear();
  for (unsigned number = 0; number < options_.queues; ++number)
    desks_.push_back(std::make_unique<Desk>(number, backing_));
  for (unsigned i = 0; i < options_.most_handlers; ++i) {
    if (Status started = start_thread(&FaultLoop::handler); !started) return started;
  }
  evictors_made_ = 0;
  for (unsigned i = 0; i < options_.evictors; ++i) {
    if (Status started = start_thread(&FaultLoop::evictor); !started) return started;
  }
  readers_made_ = 0;
  for (unsigned i = 0; i < options_.readers; ++i) {
    if (Status started = start_thread(&FaultLoop::reader); !started) return started;
  }
  return {};
}

Status FaultLoop::start_thread(os::ThreadBody body) {
  if (!options_.can_stop) return os::start_runtime_thread(body, this);
  auto started = os::start_ending_thread(body, this);
  if (!started) return fail(std::move(started.error()));
  threads_.push_back(*started);
  return {};
}

void FaultLoop::stop() {
  stopping_ = true;
  handlers_ = options_.most_handlers;
  handlers_.notify_all();
  for (const auto& desk : desks_) desk->lead.tell();
  const std::uint64_t one = 1;
  while (write(wake_up_, &one, sizeof one) < 0 && errno == EINTR) continue;
  for (const pthread_t thread : threads_) pthread_join(thread, nullptr);
  threads_.clear();
  close(wake_up_);
}

Status FaultLoop::start_in_child() {
  serving_ = 0;
  return start();
}

void* FaultLoop::handler(void* loop) {
  static_cast<FaultLoop*>(loop)->handle();
  return nullptr;
}

void* FaultLoop::evictor(void* loop) {
  auto& self = *static_cast<FaultLoop*>(loop);
  Pager& pager = self.pager_;
  const unsigned number = self.evictors_made_.fetch_add(1);
  const int rests = number == 0 ? kEvictorRestsMs : self.options_.can_stop ? kStopLooksMs : kHelpersRestMs;
  while (!self.stopping_.load(std::memory_order_relaxed)) {
    switch (pager.evict_once(number)) {
      case Pager::Evicted::kWorked: break;
      case Pager::Evicted::kIdle: pager.wait_for_eviction_work(rests, number); break;
      case Pager::Evicted::kStoreFull: base::sleep_for(kStoreFullWait); break;
    }
  }
  return nullptr;
}

void* FaultLoop::reader(void* loop) {
  auto& self = *static_cast<FaultLoop*>(loop);
  const unsigned number = self.options_.most_handlers + self.readers_made_.fetch_add(1);
  std::byte* const buffer = self.buffers_.at(number);
  for (base::Clock::time_point weighed{}; !self.stopping_.load(std::memory_order_relaxed);) {
    const std::uint32_t used =
        self.pager_.read_ahead_once(buffer, self.options_.can_stop ? kStopLooksMs : kReaderRestsMs);
    used != 0 ? self.buffers_.used(number, used) : self.buffers_.shrink(number);
    if (!self.options_.weighs_orders || base::Clock::now() - weighed < kWeighing) continue;
    self.pager_.weigh_order();
    weighed = base::Clock::now();
  }
  return nullptr;
}

bool FaultLoop::read_event(Desk& desk, unsigned desks, os::FaultEvent& event) {
  const unsigned queues = view_.queues() / desks;
  for (unsigned i = 0; i < queues; ++i) {
    const unsigned place = (desk.next_queue + i) % queues;
    if (!view_.queue(desk.number + place * desks).read_event(event)) continue;
    desk.next_queue = place + 1;
    return true;
  }
  return false;
}

// False: nothing has come, but an answer may have.
bool FaultLoop::next_event(Desk& desk, unsigned desks, os::FaultEvent& event) {
  const bool in_flight = desk.in_flight();
  auto look_out = in_flight ? kLookOut : std::chrono::microseconds(serving_.load() == 0 ? options_.spin_us : 0);
  if (!desk.polling.pays()) look_out = {};
  const auto until = Clock::now() + look_out;
  do {
    if (read_event(desk, desks, event)) return true;
    if (in_flight && land_one(desk)) return false;
  } while (Clock::now() < until);
  pollfd waiting[kMostQueues + 2];
  unsigned count = 0;
  for (unsigned queue = desk.number; queue < view_.queues(); queue += desks) {
    waiting[count++] = {view_.queue(queue).descriptor(), POLLIN, 0};
  }
  waiting[count++] = {wake_up_, POLLIN, 0};
  if (in_flight) waiting[count++] = {desk.reads->descriptor(), POLLIN, 0};
  sleep_for_any(waiting, count, in_flight ? kLookAgainMs : -1);
  return read_event(desk, desks, event);
}

void FaultLoop::note_thread(Desk& desk, std::uint32_t thread) {
  if (desk.first_thread == 0) desk.first_thread = thread;
  if (thread == desk.first_thread || thread == desk.last_thread) return;
  desk.last_thread = thread;
  wake_handler();
}

void FaultLoop::goes_on(const Waiting& waiting, std::uint32_t pages_read) {
  pager_.note_stall(waiting.page, waiting.since);
  FaultObserver* const observer = observer_.load(std::memory_order_acquire);
  if (observer == nullptr) return;
  observer->ended(waiting.page, waiting.place, Clock::now() - waiting.since, pages_read);
}

// Other desks may want one, too.
void FaultLoop::wake_handler() {
  unsigned awake = handlers_.load();
  do {
    if (awake >= options_.most_handlers) return;
  } while (!handlers_.compare_exchange_weak(awake, awake + 1));
  handlers_.notify_all();
  if (desks_for(awake + 1) == desks_for(awake)) return;
  for (const auto& desk : desks_) desk->lead.tell();
}

std::byte* FaultLoop::flight_buffer(const Desk& desk, unsigned number) const {
  return buffers_.at(options_.most_handlers + options_.readers + desk.number) +
         std::size_t{number} * kFlightPages * base::kPageBytes;
}

bool FaultLoop::read_later(Desk& desk, const Pager::Started& started, const Waiting& waiting) {
  if (desk.free_numbers.empty() || started.incoming.pages() > kFlightPages) return false;
  const unsigned number = desk.free_numbers.back();
  const Incoming::Reads reads(started.incoming, flight_buffer(desk, number));
  if (reads.all().size() != 1 || !desk.reads->begin(number, reads.all()[0])) return false;
  desk.free_numbers.pop_back();
  desk.flights[number] = {started, waiting};
  return true;
}

bool FaultLoop::land_one(Desk& desk) {
  const auto answer = desk.reads->take();
  if (!answer) return false;
  const Flight& flight = desk.flights[answer->number];
  std::byte* const buffer = flight_buffer(desk, answer->number);
  pager_.finish_fault(flight.started, answer->arrived ? buffer : nullptr, buffer);
  goes_on(flight.waiting, flight.started.pages_read());
  desk.free_numbers.push_back(answer->number);
  return true;
}

void FaultLoop::land_all(Desk& desk) {
  const auto until = Clock::now() + (desk.polling.pays() ? kLookOut : std::chrono::microseconds(0));
  while (desk.in_flight()) {
    if (land_one(desk) || Clock::now() < until) continue;
    pollfd waiting{desk.reads->descriptor(), POLLIN, 0};
    sleep_for_any(&waiting, 1, kLookAgainMs);
  }
}

FaultLoop::Long FaultLoop::lead(Desk& desk, unsigned handler, std::byte* buffer) {
  Long found;
  for (;;) {
    os::FaultEvent event;
    // Asked once: whoever sleeps with less than what he is for would leave that to one who may be busy.
    const unsigned desks = open_desks();
    if (handler % desks != desk.number) {
      land_all(desk);
      found.elsewhere = true;
      return found;
    }
    if (!next_event(desk, desks, event)) {
      if (stopping_.load(std::memory_order_relaxed)) {
        land_all(desk);
        found.stop = true;
        return found;
      }
      continue;
    }
    note_thread(desk, event.thread);
    const PageNumber page = view_.page_of(event.address);
    const auto since = Clock::now();
    FaultObserver* const observer = observer_.load(std::memory_order_acquire);
    const std::uintptr_t touched = event.write_protected ? 0 : event.address;
    found.waiting = {page, since, observer != nullptr ? observer->begun(event.thread, touched) : 0};
    desk.polling.note(since, event.thread);
    found.write = event.write;
    run_page_.pulse.beat(std::chrono::nanoseconds(since.time_since_epoch()).count());
    found.guarded = event.write_protected;
    if (found.guarded) {
      if (pager_.written_at_once(page)) {
        goes_on(found.waiting, 0);
        continue;
      }
      land_all(desk);
      return found;
    }
    const auto begun = pager_.begin_fault(page, found.write, found.started);
    if (begun == Pager::Begun::kDone) {
      goes_on(found.waiting, 0);
      continue;
    }
    found.begun = begun == Pager::Begun::kReading;
    if (found.begun && found.started.is_near() && found.started.incoming.pages() <= ReadBuffers::kKeptPages) {
      pager_.finish_fault(found.started, nullptr, buffer);
      goes_on(found.waiting, found.started.pages_read());
      continue;
    }
    if (found.begun && desk.reads && read_later(desk, found.started, found.waiting)) continue;
    land_all(desk);
    return found;
  }
}

void FaultLoop::handle() {
  const unsigned number = handlers_made_++;
  for (unsigned awake; (awake = handlers_.load()) <= number;) handlers_.wait(awake);
  std::byte* const buffer = buffers_.at(number);
  for (;;) {
    Desk& desk = desk_of(number);
    if (!desk.lead.take([&] { return &desk_of(number) == &desk; })) continue;
    const Long fault = lead(desk, number, buffer);
    desk.lead.give();
    if (fault.stop) return;
    if (fault.elsewhere) continue;
    os::look_out_for_answers(serving_.fetch_add(1) == 0 && desk.polling.pays());
    std::uint32_t used = 0;
    if (fault.guarded) {
      pager_.written(fault.waiting.page);
    } else if (fault.begun) {
      used = pager_.finish_fault(fault.started, nullptr, buffer);
    } else {
      used = pager_.fault(fault.waiting.page, fault.write, buffer);
    }
    if (used != 0) buffers_.used(number, used);
    serving_.fetch_sub(1);
    goes_on(fault.waiting, fault.begun ? fault.started.pages_read() : used);
  }
}

}  // namespace farheap::pager
