// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime's time is the kernel's, CLOCK_MONOTONIC. std::chrono::steady_clock is not: it asks clock_gettime(), which
// may be the program's (libfaketime), and a wait until a moment of that clock may never end.
//
// Thread-safety: any thread, and signal handlers. Nothing is allocated.
#pragma once

#include <chrono>
#include <ctime>

namespace farheap::base {

inline constexpr double kNsPerSecond = 1e9;

// A clock as those of <chrono>. now() is no system call where the kernel maps its clock into processes (the vDSO).
struct Clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock>;
  static constexpr bool is_steady = true;
  [[nodiscard]] static time_point now() noexcept;
};

// Any of the kernel's clocks: CLOCK_REALTIME, CLOCK_BOOTTIME, ...
[[nodiscard]] std::chrono::nanoseconds kernel_time(clockid_t clock) noexcept;

// Seconds since 1970.
[[nodiscard]] inline std::time_t real_time_s() noexcept {
  return std::chrono::duration_cast<std::chrono::seconds>(kernel_time(CLOCK_REALTIME)).count();
}

// Not shorter, whatever signals come. errno stays.
void sleep_until(Clock::time_point moment) noexcept;
inline void sleep_for(Clock::duration time) noexcept { sleep_until(Clock::now() + time); }

}  // namespace farheap::base
