// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/process/served_connection.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/mutex.hpp"
#include "engines/process/slot_answer.hpp"

namespace farheap::engines {

using namespace store::beside;

namespace {

constexpr auto kAsked = static_cast<std::uint32_t>(SlotState::kAsked);
constexpr auto kTaken = static_cast<std::uint32_t>(SlotState::kTaken);
constexpr auto kAnswered = static_cast<std::uint32_t>(SlotState::kAnswered);

// A client that leaves closes its socket at once. Where that is not heard, forked children have it open as well.
constexpr auto kOthersHaveIt = std::chrono::nanoseconds(std::chrono::milliseconds(100));

// As long as it says, and not to be cut off under us.
bool is_sound(int file, std::size_t bytes) {
  struct stat status{};
  const int seals = fcntl(file, F_GET_SEALS);
  return fstat(file, &status) == 0 && static_cast<std::size_t>(status.st_size) == bytes && seals >= 0 &&
         (seals & F_SEAL_SHRINK) != 0;
}

}  // namespace

ServedConnection::~ServedConnection() {
  stop();
  starting_.lock();  // one that was being started is there; none is any more
  starting_.unlock();
  for (auto& worker : workers_) worker.join();
  if (waiting_ >= 0) close(waiting_);
  if (memory_.address() != nullptr) munmap(memory_.address(), memory_.bytes());
  for (auto& event : events_) {
    if (event.load() != 0) close(event.load() - 1);
  }
  close(socket_);
}

Status ServedConnection::attach(int file, std::size_t data_bytes, Store& engine) {
  constexpr char kWhat[] = "cannot take the client's memory";
  constexpr std::size_t kMost = std::size_t{64} << 20;
  const bool usable = memory_.address() == nullptr && data_bytes % 4096 == 0 && data_bytes <= kMost &&
                      is_sound(file, shared_bytes(data_bytes));
  void* const at =
      usable ? mmap(nullptr, shared_bytes(data_bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  const int why = usable ? errno : EINVAL;
  close(file);
  if (at == MAP_FAILED) return fail(errno_error(why, kWhat, "farheap-engines"));
  memory_ = SharedMemory(static_cast<std::byte*>(at), data_bytes);
  engine_ = &engine;
  base::LockGuard lock(starting_);
  start_worker();
  return {};
}

Status ServedConnection::notify(int event, std::uint64_t number) {
  int none = 0;
  if (number < kMostNotified && events_[number].compare_exchange_strong(none, event + 1)) return {};
  close(event);
  return fail(ErrorCode::kInvalidArgument, "cannot tell of answers", "farheap-engines", "the number is taken");
}

void ServedConnection::stop() {
  stopping_.store(true);
  if (memory_.address() == nullptr) return;
  memory_.head().doorbell.fetch_add(1);
  futex_wake(memory_.head().doorbell, INT32_MAX);
}

void ServedConnection::leaving(int waiting) {
  if (waiting_ >= 0) close(waiting_);
  waiting_ = waiting;
  overdue_ns_ = store::Spin::now_ns() + kOthersHaveIt.count();
}

int ServedConnection::take_waiting() { return std::exchange(waiting_, -1); }

void ServedConnection::start_worker() {
  workers_.emplace_back([this] { work(); });
}

void ServedConnection::work() {
  while (const auto index = next_question()) {
    call_another();
    answer(*index);
    idle_since_ns_.store(store::Spin::now_ns(), std::memory_order_relaxed);
  }
}

std::optional<std::uint32_t> ServedConnection::claim() {
  for (std::uint32_t index = 0; index < kSlots; ++index) {
    auto& state = memory_.slot(index).state;
    std::uint32_t asked = kAsked;
    if (state.load(std::memory_order_relaxed) == kAsked &&
        state.compare_exchange_strong(asked, kTaken, std::memory_order_acquire)) {
      return index;
    }
  }
  return {};
}

bool ServedConnection::is_any_asked() const {
  for (std::uint32_t index = 0; index < kSlots; ++index) {
    if (memory_.slot(index).state.load() == kAsked) return true;
  }
  return false;
}

// nullopt: stop. One worker at a time looks for a while; whoever asks meanwhile need wake nobody.
std::optional<std::uint32_t> ServedConnection::next_question() {
  SharedHead& head = memory_.head();
  std::optional<std::uint32_t> found;
  if (head.looking.fetch_add(1) == 0) {
    (void)spin_.look([&] { return (found = claim()).has_value() || stopping_.load(std::memory_order_relaxed); });
  }
  head.looking.fetch_sub(1);
  if (!found) {
    head.asleep.fetch_add(1);
    while (!stopping_.load()) {
      const std::uint32_t rung = head.doorbell.load();
      found = claim();
      if (found) break;
      futex_wait(head.doorbell, rung, -1);
    }
    head.asleep.fetch_sub(1);
  }
  spin_.learn(store::Spin::now_ns() - idle_since_ns_.load(std::memory_order_relaxed));
  return stopping_.load() ? std::nullopt : found;
}

// Who took a question looks whether more wait: they may have relied on one who was looking.
void ServedConnection::call_another() {
  SharedHead& head = memory_.head();
  if (!is_any_asked() || head.looking.load() != 0) return;
  if (head.asleep.load() != 0) return futex_wake(head.doorbell, 1);
  base::LockGuard lock(starting_);
  if (workers_.size() < kMostWorkers && !stopping_.load()) start_worker();
}

void ServedConnection::answer(std::uint32_t index) {
  Slot& slot = memory_.slot(index);
  const std::uint32_t notify = slot.notify;
  answer_slot(slot, {memory_.data(index), memory_.data_bytes()}, *engine_);
  slot.state.store(kAnswered);
  if (slot.waited.load() != 0) futex_wake(slot.state, 1);
  if (notify == 0 || notify > kMostNotified) return;
  const std::uint64_t one = 1;
  const int event = events_[notify - 1].load() - 1;
  if (event >= 0 && write(event, &one, sizeof one) < 0) return;  // full: it is readable already
}

}  // namespace farheap::engines
