// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Faults tell how a process fares. It rests: it has asked for no page for a while. It is calm: it asks for some, and
// waits for them next to no time. It works. Or it thrashes: it waits for pages most of the time. A process that rests
// may still compute on the pages it has; its processor time tells.
//
// Thread-safety: none.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.hpp"

namespace farheap::pager {

class Pressure {
 public:
  // Programs that look around now and then, ten times a second for instance, do not rest.
  static constexpr std::chrono::milliseconds kRest{150};
  static constexpr std::chrono::milliseconds kLookEvery{20};
  // Long enough for a burst, a child's first touches for instance, to be none.
  static constexpr std::chrono::milliseconds kWindow{300};

  // False: look() would do nothing, and the caller need not add up the counts.
  [[nodiscard]] bool is_due(base::Clock::time_point now) const { return now >= next_look_; }
  // All since the process, or its paging, began.
  struct Counts {
    std::uint64_t faults = 0;
    std::chrono::nanoseconds waited{0};  // for them, by all threads
    std::chrono::nanoseconds ran{0};     // on processors
  };
  void look(base::Clock::time_point now, const Counts& counts) {
    next_look_ = now + kLookEvery;
    if (counts.faults != faults_) last_fault_ = now;
    faults_ = counts.faults;
    const auto passed = now - window_;
    if (passed < kWindow) return;
    thrashes_ = 2 * (counts.waited - at_window_.waited) >= passed;
    is_calm_ = kCalmPart * (counts.waited - at_window_.waited) < passed;
    idles_ = kIdlePart * (counts.ran - at_window_.ran) < passed;
    window_ = now;
    at_window_ = counts;
  }

  [[nodiscard]] bool rests(base::Clock::time_point now) const { return now - last_fault_ >= kRest; }
  [[nodiscard]] bool thrashes() const { return thrashes_; }
  [[nodiscard]] bool is_calm() const { return is_calm_; }
  // The evictor looks round a hundred times a second, in less time than this.
  [[nodiscard]] bool idles() const { return idles_; }

 private:
  static constexpr int kIdlePart = 20, kCalmPart = 100;
  base::Clock::time_point next_look_{};
  base::Clock::time_point last_fault_ = base::Clock::now();
  base::Clock::time_point window_ = base::Clock::now();
  Counts at_window_;
  std::uint64_t faults_ = 0;
  bool thrashes_ = false, is_calm_ = false, idles_ = false;
};

}  // namespace farheap::pager
