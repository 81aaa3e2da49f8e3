// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is on its way, and who waits until it has come to rest: a page that somebody wants to discard, a thread that is
// about to fork. While the pager is frozen nothing sets out; while eviction is paused nothing leaves the view.
//
// Thread-safety: none of its own; the pager's mutex guards it. In a forked child: construct it anew.
#pragma once

#include <cstdint>

#include "base/condition.hpp"

namespace farheap::pager {

class Moving {
 public:
  void begin() { ++in_flight_; }
  void end() {
    --in_flight_;
    tell();
  }

  // Until a page has come to rest, or for no reason. Lets go of the mutex, which is the pager's, meanwhile.
  void wait(base::Mutex& mutex) FARHEAP_REQUIRES(mutex) { came_to_rest_.wait(mutex); }
  void wait_for(base::Mutex& mutex, base::Clock::duration at_most) FARHEAP_REQUIRES(mutex) {
    came_to_rest_.wait_for(mutex, at_most);
  }
  void tell() { came_to_rest_.notify_all(); }

  // From here on nothing sets out; returns when nothing is on its way.
  void freeze(base::Mutex& mutex) FARHEAP_REQUIRES(mutex) {
    frozen_ = true;
    while (in_flight_ != 0) wait(mutex);
  }
  void wait_for_thaw(base::Mutex& mutex) FARHEAP_REQUIRES(mutex) {
    while (frozen_) wait(mutex);
  }
  // Eviction goes on, too.
  void thaw() {
    frozen_ = paused_ = false;
    tell();
  }
  void pause_eviction(bool on) { paused_ = on; }
  [[nodiscard]] bool is_frozen() const { return frozen_; }
  [[nodiscard]] bool is_eviction_paused() const { return paused_; }
  [[nodiscard]] bool may_evict() const { return !frozen_ && !paused_; }

 private:
  base::Condition came_to_rest_;
  std::uint64_t in_flight_ = 0;
  bool frozen_ = false, paused_ = false;
};

}  // namespace farheap::pager
