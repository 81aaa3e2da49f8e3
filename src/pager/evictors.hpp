// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The threads that evict. The first of them works whenever there is something to do. The others help it while more is
// to be brought out than those that are awake have in hand: where many processors miss, or where the store takes its
// time, so that one writes while the next chooses.
//
// Thread-safety: as Sleeper, one for each. In a forked child: forget_threads().
#pragma once

#include <algorithm>
#include <new>
#include <vector>

#include "pager/room.hpp"
#include "pager/sleeper.hpp"

namespace farheap::pager {

class Evictors {
 public:
  static constexpr std::uint64_t kWorthHelp = 32;  // pages that nobody brings out yet

  // The room outlives it.
  Evictors(unsigned count, const Room& room) : room_(room), all_(count) {}

  // One evictor takes so many of the pages that are to go. It leaves some to the others where somebody waits for room.
  [[nodiscard]] std::uint64_t share_of(std::uint64_t pages) const {
    return room_.waiting() == 0 ? pages : std::min(pages, std::max(pages / all_.size(), kWorthHelp));
  }
  void sleep(unsigned evictor, base::Mutex& mutex, base::Clock::duration at_most) FARHEAP_REQUIRES(mutex) {
    all_[evictor].sleep(mutex, at_most);
  }
  // There is something to do. Requires: the mutex.
  void wake() { all_.front().sleeps() ? all_.front().wake() : call_help(); }
  // If there is enough to do for one more. Requires: the mutex.
  void call_help() {
    if (all_.size() == 1 || room_.excess() < kWorthHelp) return;
    for (std::size_t i = 1; i < all_.size(); ++i) {
      if (all_[i].sleeps()) return all_[i].wake();
    }
  }
  // The first, and so most likely all: as advice.
  [[nodiscard]] bool sleeps() const { return all_.front().sleeps(); }

  void forget_threads() {
    for (Sleeper& one : all_) new (&one) Sleeper;
  }

 private:
  const Room& room_;
  std::vector<Sleeper> all_;
};

}  // namespace farheap::pager
