// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Until when a store may be at a call: an absolute time on os::boot_clock_ns(), which every engine's loop of attempts
// and every wait for an answer looks at.
//
//   the caller     const CallDeadline until(Deadline::at(lease_end)); store.put(batch);
//   the store      Deadline deadline = std::min(Deadline::in(patience), Deadline::of_this_call());
//                  before each sending: deadline.has_passed() -> give up, kUnknown for what was sent without an answer
//                  each wait: at most deadline.left()
//
// The promise to the caller: nothing is begun to be sent after the deadline, and the call returns soon after it. What
// was sent before may still be on its way; who cannot have that come late fences it (share/segment_leases.hpp).
//
// Thread-safety: Deadline: plain values. CallDeadline: its own thread's; who hands work of a call to another thread
// hands on of_this_call().
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

#include "os/boot_clock.hpp"

namespace farheap::store {

class Deadline {
 public:
  // Never.
  constexpr Deadline() = default;
  [[nodiscard]] static constexpr Deadline at(std::int64_t boot_ns) { return Deadline(boot_ns); }
  [[nodiscard]] static Deadline in(std::chrono::nanoseconds time) {
    const std::int64_t now = os::boot_clock_ns();
    return time.count() > kNever - now ? Deadline() : Deadline(now + time.count());
  }
  // The earliest of those that the callers of this thread have set.
  [[nodiscard]] static Deadline of_this_call();

  [[nodiscard]] bool is_never() const { return at_ns_ == kNever; }
  [[nodiscard]] bool has_passed() const { return !is_never() && os::boot_clock_ns() >= at_ns_; }
  // Never negative; of one that never comes: longer than anyone waits.
  [[nodiscard]] std::chrono::nanoseconds left() const {
    if (is_never()) return std::chrono::nanoseconds(kNever);
    const std::int64_t now = os::boot_clock_ns();
    return std::chrono::nanoseconds(at_ns_ > now ? at_ns_ - now : 0);
  }
  // For poll() and its like: whole milliseconds, rounded up and at most `most`.
  [[nodiscard]] int left_ms(int most) const {
    const auto left_ms = std::chrono::ceil<std::chrono::milliseconds>(left()).count();
    return left_ms < most ? static_cast<int>(left_ms) : most;
  }
  // The time itself; of one that never comes: the latest there is.
  [[nodiscard]] constexpr std::int64_t boot_ns() const { return at_ns_; }
  friend auto operator<=>(const Deadline&, const Deadline&) = default;

 private:
  static constexpr std::int64_t kNever = INT64_MAX;
  explicit constexpr Deadline(std::int64_t at_ns) : at_ns_(at_ns) {}
  std::int64_t at_ns_ = kNever;
};

// For the store calls of this thread while it lives, and never later than what an outer one says.
class CallDeadline {
 public:
  explicit CallDeadline(Deadline deadline);
  ~CallDeadline();
  CallDeadline(const CallDeadline&) = delete;
  CallDeadline& operator=(const CallDeadline&) = delete;

 private:
  Deadline outer_;
};

}  // namespace farheap::store
