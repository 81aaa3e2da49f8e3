// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread that sleeps until there is work for it: the evictor. Where it is awake, to wake it costs a look.
//
// Thread-safety: sleeps() may be asked by any thread at any time, as advice. The rest wants the mutex that it sleeps
// with. In a forked child: construct it anew.
#pragma once

#include <atomic>

#include "base/condition.hpp"

namespace farheap::pager {

class Sleeper {
 public:
  // Until somebody wakes it, the time is over, or for no reason.
  void sleep(base::Mutex& mutex, base::Clock::duration at_most) FARHEAP_REQUIRES(mutex) {
    sleeps_ = true;
    work_.wait_for(mutex, at_most);
    sleeps_ = false;
  }
  // From now on it counts as awake. Requires: the mutex.
  void wake() {
    if (sleeps_.exchange(false)) work_.notify_one();
  }
  [[nodiscard]] bool sleeps() const { return sleeps_.load(std::memory_order_relaxed); }

 private:
  base::Condition work_;
  std::atomic<bool> sleeps_ = false;  // changed with the mutex only
};

}  // namespace farheap::pager
