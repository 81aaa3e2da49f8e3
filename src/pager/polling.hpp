// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether it pays to poll for the next fault instead of going to sleep. It does while a processor has nothing else to
// do: to wake a sleeper takes up to 60 us there. Where the program, or others, want all processors, polling takes from
// them what it gains: then its threads wait, ready to run, and the kernel counts how long (os/run_delay.hpp).
//
// Looks at the threads that fault, for a window at a time. If one waited for more than a tenth of it, there is no
// polling for a while, and for longer each time that it proves wrong again at once.
//
// Thread-safety: note() one at a time; pays() from any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/clock.hpp"
#include "os/run_delay.hpp"

namespace farheap::pager {

class Polling {
 public:
  using Clock = base::Clock;
  static constexpr std::chrono::milliseconds kWindow{4};
  static constexpr std::chrono::milliseconds kShortestRest{50};
  static constexpr std::chrono::milliseconds kLongestRest{1600};
  static constexpr int kMostDelayedPercent = 10;

  [[nodiscard]] bool pays() const { return pays_.load(std::memory_order_relaxed); }

  // This thread faulted. `delay_of`: as os::run_delay_ns().
  template <class DelayOf = decltype(os::run_delay_ns)>
  void note(Clock::time_point now, std::uint32_t thread, DelayOf delay_of = os::run_delay_ns) {
    if (now < next_look_) return;
    const auto delay = thread_ != 0 ? delay_of(thread_) : std::nullopt;
    if (delay && began_delay_) decide(now, *delay - *began_delay_);
    // From a rest on, the next window begins with polling.
    if (now >= rest_until_) pays_.store(true, std::memory_order_relaxed);
    began_delay_ = thread == thread_ && delay ? delay : delay_of(thread);
    thread_ = thread;
    began_ = now;
    next_look_ = std::max(now + kWindow, rest_until_);
  }

 private:
  void decide(Clock::time_point now, std::int64_t delayed_ns) {
    if (!pays()) return;  // a rest has ended
    if (delayed_ns * 100 <= (now - began_).count() * kMostDelayedPercent) {
      rest_ = std::max<Clock::duration>(rest_ / 2, kShortestRest);
      return;
    }
    pays_.store(false, std::memory_order_relaxed);
    rest_until_ = now + rest_;
    rest_ = std::min<Clock::duration>(rest_ * 2, kLongestRest);
  }

  std::atomic<bool> pays_ = true;
  std::uint32_t thread_ = 0;  // that is looked at
  std::optional<std::int64_t> began_delay_;
  Clock::time_point began_{};
  Clock::time_point next_look_{};
  Clock::time_point rest_until_{};
  Clock::duration rest_ = kShortestRest;
};

}  // namespace farheap::pager
