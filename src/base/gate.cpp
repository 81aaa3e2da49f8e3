// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: once the bit is set nobody comes in, so those inside only become fewer: closing ends when the last of
// them leaves, whatever the traffic.
#include "base/gate.hpp"

#include <climits>

#include "base/futex.hpp"

namespace farheap::base {

std::uint32_t Gate::wait_until_open() noexcept {
  for (;;) {
    // In this order: if it is opened in between, the wait finds the number changed.
    std::uint32_t times = times_opened_.load(std::memory_order_acquire);
    std::uint32_t seen = state_.load(std::memory_order_relaxed);
    if ((seen & kClosed) == 0) return seen;
    futex_wait(times_opened_, times);
  }
}

void Gate::close() noexcept {
  while ((state_.fetch_or(kClosed, std::memory_order_acquire) & kClosed) != 0) (void)wait_until_open();
  for (std::uint32_t seen; (seen = state_.load(std::memory_order_acquire)) != kClosed;) futex_wait(state_, seen);
}

void Gate::open() noexcept {
  state_.fetch_and(~kClosed, std::memory_order_release);
  times_opened_.fetch_add(1, std::memory_order_release);
  futex_wake(times_opened_, INT_MAX);
}

// Only the closer waits on the state.
void Gate::wake_closer() noexcept { futex_wake(state_, 1); }

}  // namespace farheap::base
