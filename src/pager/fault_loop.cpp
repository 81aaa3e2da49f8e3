// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/fault_loop.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/system_call.hpp"
#include "os/io_ring.hpp"
#include "os/runtime_threads.hpp"

namespace farheap::pager {

namespace {

constexpr unsigned kMostInFlight = 16;
constexpr std::uint32_t kFlightPages = 16;  // larger reads are a sweep's: those take so long that waiting costs little
// A read that the kernel did not take at once (it was short of memory) goes with the next look for answers.
constexpr int kLookAgainMs = 10;
constexpr std::chrono::microseconds kLookOut{150};  // for answers, before the leader goes to sleep
constexpr std::chrono::milliseconds kStoreFullWait{500};
constexpr int kReaderRestsMs = 200;  // without work; then its buffer is given back
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
    : pager_(pager), backing_(backing), view_(view), run_page_(run_page), options_(options) {}

Status FaultLoop::start() {
  const std::uint32_t largest = std::max(options_.buffer_pages, kMostInFlight * kFlightPages);
  if (Status made = buffers_.make(options_.most_handlers + options_.readers + 1, largest); !made) return made;
  if (options_.can_stop) wake_up_ = eventfd(0, EFD_CLOEXEC);
  if (options_.can_stop && wake_up_ < 0) return fail(errno_error(errno, "cannot start the pager", "eventfd"));
  // All handlers now, though most of them wait: later, pthread_create() could want a lock that the program's thread
  // holds whose fault it is that we should serve.
  handlers_ = 1;
  handlers_made_ = 0;
  {
    base::LockGuard turn(turn_);
    reads_ = backing_.reads_in_flight(kMostInFlight);
    flights_.resize(reads_ ? kMostInFlight : 0);
    free_numbers_.clear();
    for (unsigned number = 0; number < flights_.size(); ++number) free_numbers_.push_back(number);
  }
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
  const std::uint64_t one = 1;
  while (write(wake_up_, &one, sizeof one) < 0 && errno == EINTR) continue;
  for (const pthread_t thread : threads_) pthread_join(thread, nullptr);
  threads_.clear();
  close(wake_up_);
}

Status FaultLoop::start_in_child() {
  new (&turn_) base::Mutex;
  {
    base::LockGuard turn(turn_);
    first_thread_ = last_thread_ = 0;
  }
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
  while (!self.stopping_.load(std::memory_order_relaxed)) {
    const std::uint32_t used =
        self.pager_.read_ahead_once(buffer, self.options_.can_stop ? kStopLooksMs : kReaderRestsMs);
    used != 0 ? self.buffers_.used(number, used) : self.buffers_.shrink(number);
  }
  return nullptr;
}

// False: nothing has come, but an answer may have.
bool FaultLoop::next_event(os::FaultEvent& event) {
  const bool in_flight = free_numbers_.size() < flights_.size();
  auto look_out = in_flight ? kLookOut : std::chrono::microseconds(serving_.load() == 0 ? options_.spin_us : 0);
  if (!polling_.pays()) look_out = {};
  const auto until = Clock::now() + look_out;
  do {
    if (view_.userfault().read_event(event)) return true;
    if (in_flight && land_one()) return false;
  } while (Clock::now() < until);
  pollfd waiting[] = {{view_.userfault().descriptor(), POLLIN, 0},
                      {wake_up_, POLLIN, 0},
                      {reads_ ? reads_->descriptor() : -1, POLLIN, 0}};
  sleep_for_any(waiting, in_flight ? 3 : 2, in_flight ? kLookAgainMs : -1);
  return view_.userfault().read_event(event);
}

void FaultLoop::note_thread(std::uint32_t thread) {
  if (first_thread_ == 0) first_thread_ = thread;
  if (thread == first_thread_ || thread == last_thread_ || handlers_ >= options_.most_handlers) return;
  last_thread_ = thread;
  ++handlers_;
  handlers_.notify_all();
}

std::byte* FaultLoop::flight_buffer(unsigned number) const {
  return buffers_.at(options_.most_handlers + options_.readers) + std::size_t{number} * kFlightPages * base::kPageBytes;
}

bool FaultLoop::read_later(const Pager::Started& started, Clock::time_point since) {
  if (free_numbers_.empty() || started.incoming.pages() > kFlightPages) return false;
  const unsigned number = free_numbers_.back();
  const Incoming::Reads reads(started.incoming, flight_buffer(number));
  if (reads.all().size() != 1 || !reads_->begin(number, reads.all()[0])) return false;
  free_numbers_.pop_back();
  flights_[number] = {started, since};
  return true;
}

bool FaultLoop::land_one() {
  const auto answer = reads_->take();
  if (!answer) return false;
  const Flight& flight = flights_[answer->number];
  std::byte* const buffer = flight_buffer(answer->number);
  pager_.finish_fault(flight.started, answer->arrived ? buffer : nullptr, buffer);
  pager_.note_stall(flight.started.page, flight.since);
  free_numbers_.push_back(answer->number);
  return true;
}

void FaultLoop::land_all() {
  const auto until = Clock::now() + (polling_.pays() ? kLookOut : std::chrono::microseconds(0));
  while (free_numbers_.size() < flights_.size()) {
    if (land_one() || Clock::now() < until) continue;
    pollfd waiting{reads_->descriptor(), POLLIN, 0};
    sleep_for_any(&waiting, 1, kLookAgainMs);
  }
}

FaultLoop::Long FaultLoop::lead(std::byte* buffer) {
  Long found;
  for (;;) {
    os::FaultEvent event;
    if (!next_event(event)) {
      if (stopping_.load(std::memory_order_relaxed)) {
        land_all();
        found.stop = true;
        return found;
      }
      continue;
    }
    note_thread(event.thread);
    found.since = Clock::now();
    polling_.note(found.since, event.thread);
    found.page = view_.page_of(event.address);
    found.write = event.write;
    run_page_.pulse.beat(std::chrono::nanoseconds(found.since.time_since_epoch()).count());
    found.guarded = event.write_protected;
    if (found.guarded) {
      if (pager_.written_at_once(found.page)) {
        pager_.note_stall(found.page, found.since);
        continue;
      }
      land_all();
      return found;
    }
    const auto begun = pager_.begin_fault(found.page, found.write, found.started);
    if (begun == Pager::Begun::kDone) {
      pager_.note_stall(found.page, found.since);
      continue;
    }
    found.begun = begun == Pager::Begun::kReading;
    if (found.begun && found.started.is_near() && found.started.incoming.pages() <= ReadBuffers::kKeptPages) {
      pager_.finish_fault(found.started, nullptr, buffer);
      pager_.note_stall(found.page, found.since);
      continue;
    }
    if (found.begun && reads_ && read_later(found.started, found.since)) continue;
    land_all();
    return found;
  }
}

void FaultLoop::handle() {
  const unsigned number = handlers_made_++;
  for (unsigned awake; (awake = handlers_.load()) <= number;) handlers_.wait(awake);
  std::byte* const buffer = buffers_.at(number);
  for (;;) {
    Long fault;
    {
      base::LockGuard turn(turn_);
      fault = lead(buffer);
    }
    if (fault.stop) return;
    os::look_out_for_answers(serving_.fetch_add(1) == 0 && polling_.pays());
    if (fault.guarded) {
      pager_.written(fault.page);
    } else if (fault.begun) {
      buffers_.used(number, pager_.finish_fault(fault.started, nullptr, buffer));
    } else {
      buffers_.used(number, pager_.fault(fault.page, fault.write, buffer));
    }
    serving_.fetch_sub(1);
    pager_.note_stall(fault.page, fault.since);
  }
}

}  // namespace farheap::pager
