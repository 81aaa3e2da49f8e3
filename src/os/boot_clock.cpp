// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/boot_clock.hpp"

#include <time.h>

#include <atomic>
#include <cerrno>

#include "base/clock.hpp"
#include "base/system_call.hpp"

namespace farheap::os {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
std::atomic<BootClock*> replaced{nullptr};

}  // namespace

// The kernel is asked itself: a program may have put another clock in the place of the C library's.
std::int64_t boot_clock_ns() {
  if (BootClock* const clock = replaced.load(std::memory_order_acquire)) return clock->now_ns();
  return base::kernel_time(CLOCK_BOOTTIME).count();
}

void boot_clock_sleep(std::chrono::nanoseconds time) {
  if (time.count() <= 0) return;
  if (BootClock* const clock = replaced.load(std::memory_order_acquire)) return clock->sleep(time);
  timespec left{.tv_sec = time.count() / kSecond, .tv_nsec = time.count() % kSecond};
  while (base::system_call(SYS_clock_nanosleep, CLOCK_BOOTTIME, 0, &left, &left) != 0 && errno == EINTR) {
  }
}

ReplacedBootClock::ReplacedBootClock(BootClock& clock) : before_(replaced.exchange(&clock)) {}
ReplacedBootClock::~ReplacedBootClock() { replaced.store(before_); }

}  // namespace farheap::os
