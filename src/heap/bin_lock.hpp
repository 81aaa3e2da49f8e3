// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The lock of one bin, and of the chunk pool behind all of them: a word that a thread waits on in the kernel, after a
// moment of looking at it. There are hundreds of bins, and fork() takes the locks of all at once, which ThreadSanitizer
// cannot follow with mutexes (it knows 64 held ones); and this one is taken and left without a call.
//
// Thread-safety: it is a lock. The child of fork() may release what its parent's thread took.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/thread_safety.hpp"

namespace farheap::heap {

class FARHEAP_CAPABILITY("lock") BinLock {
 public:
  void lock() noexcept FARHEAP_ACQUIRE() {
    std::uint32_t seen = kFree;
    if (state_.compare_exchange_strong(seen, kTaken, std::memory_order_acquire)) [[likely]]
      return;
    lock_contended();
  }
  void unlock() noexcept FARHEAP_RELEASE() {
    if (state_.exchange(kFree, std::memory_order_release) == kAwaited) [[unlikely]]
      wake_one();
  }

  void assume_held() const FARHEAP_ASSERT_CAPABILITY(this) {}  // as base::Mutex's

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kTaken = 1;
  static constexpr std::uint32_t kAwaited = 2;  // taken, and somebody may be waiting

  void lock_contended() noexcept;
  void wake_one() noexcept;

  std::atomic<std::uint32_t> state_{kFree};
};

}  // namespace farheap::heap
