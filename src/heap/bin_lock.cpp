// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "heap/bin_lock.hpp"

#include "base/futex.hpp"

namespace farheap::heap {

// What is done under the lock is short: the owner is likely gone before a wait in the kernel has begun.
static constexpr int kSpins = 64;

void BinLock::lock_contended() noexcept {
  for (int i = 0; i < kSpins; ++i) {
    std::uint32_t free_state = kFree;
    if (state_.load(std::memory_order_relaxed) == kFree &&
        state_.compare_exchange_weak(free_state, kTaken, std::memory_order_acquire)) {
      return;
    }
    __builtin_ia32_pause();
  }
  while (state_.exchange(kAwaited, std::memory_order_acquire) != kFree) {
    base::futex_wait(state_, kAwaited);
  }
}

void BinLock::wake_one() noexcept { base::futex_wake(state_, 1); }

}  // namespace farheap::heap
