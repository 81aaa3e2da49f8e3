// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "heap/bin_lock.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

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
  int saved_errno = errno;  // free() must not change it
  while (state_.exchange(kAwaited, std::memory_order_acquire) != kFree) {
    syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, kAwaited, nullptr, nullptr, 0);
  }
  errno = saved_errno;
}

void BinLock::wake_one() noexcept {
  int saved_errno = errno;
  syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  errno = saved_errno;
}

}  // namespace farheap::heap
