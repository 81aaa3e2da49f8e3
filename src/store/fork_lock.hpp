// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Mutual exclusion between the threads of one process that survives fork(): a lock that the parent held at the
// time of the fork is free in the child.
//
// Thread-safety: a lock.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "base/thread_safety.hpp"

namespace farheap::store {

class FARHEAP_CAPABILITY("lock") ForkLock {
 public:
  void lock() FARHEAP_ACQUIRE() {
    const std::int32_t me = getpid();
    std::int32_t seen = holder_.load(std::memory_order_relaxed);
    for (;;) {
      if (seen == me) {
        holder_.wait(me);
        seen = holder_.load(std::memory_order_relaxed);
      } else if (holder_.compare_exchange_weak(seen, me, std::memory_order_acquire)) {  // free, or of the parent
        return;
      }
    }
  }
  void unlock() FARHEAP_RELEASE() {
    holder_.store(0, std::memory_order_release);
    holder_.notify_all();
  }

 private:
  std::atomic<std::int32_t> holder_{0};  // a process id; 0: free
};

}  // namespace farheap::store
