// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What std::condition_variable is, by the kernel's clock (base/clock.hpp) and without the C library's waits, which the
// program may have replaced.
//
// Thread-safety: any thread of one process. In a forked child, where nobody waits: construct it anew.
#pragma once

#include <climits>

#include "base/futex.hpp"
#include "base/mutex.hpp"

namespace farheap::base {

class Condition {
 public:
  Condition() = default;
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  // Lets go of the mutex meanwhile. Returns with it held, when it was told or for no reason: so it is called in a loop.
  void wait(Mutex& mutex) FARHEAP_REQUIRES(mutex) {
    const Waiting here(*this);
    const Without unlocked(mutex);
    futex_wait(told_, here.seen);
  }
  void wait_until(Mutex& mutex, Clock::time_point moment) FARHEAP_REQUIRES(mutex) {
    const Waiting here(*this);
    const Without unlocked(mutex);
    futex_wait_until(told_, here.seen, moment);
  }
  void wait_for(Mutex& mutex, Clock::duration at_most) FARHEAP_REQUIRES(mutex) {
    wait_until(mutex, Clock::now() + at_most);
  }
  // Returns what the predicate says in the end. The predicate is asked with the mutex held. Clang does not analyse
  // this: it cannot see that the lock which the predicate names is this one.
  template <class Predicate>
  bool wait_for(Mutex& mutex, Clock::duration at_most, Predicate is_so)
      FARHEAP_REQUIRES(mutex) FARHEAP_NO_THREAD_SAFETY_ANALYSIS {
    const auto moment = Clock::now() + at_most;
    while (!is_so()) {
      if (Clock::now() >= moment) return false;
      wait_until(mutex, moment);
    }
    return true;
  }

  // Requires: the caller holds the mutex of those that wait, or one who begins to wait meanwhile could be told instead.
  void notify_one() { tell(1); }
  void notify_all() { tell(INT_MAX); }

 private:
  struct Waiting {
    explicit Waiting(Condition& condition) : all(condition) {
      all.waiting_.fetch_add(1);
      seen = all.told_.load();
    }
    ~Waiting() { all.waiting_.fetch_sub(1); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

    Condition& all;
    std::uint32_t seen;
  };

  void tell(int most) {
    told_.fetch_add(1);
    if (waiting_.load() != 0) futex_wake(told_, most);
  }

  std::atomic<std::uint32_t> told_{0};  // times
  std::atomic<std::uint32_t> waiting_{0};
};

}  // namespace farheap::base
