// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Time that goes on while the machine sleeps and is never set: what leases and the deadlines of store calls are counted
// by. All that waits for it, or looks at it, does so here, so that a simulation can put its own clock in the place of
// the kernel's.
//
// Thread-safety: any thread; ReplacedBootClock: while nobody looks at the clock.
#pragma once

#include <chrono>
#include <cstdint>

namespace farheap::os {

[[nodiscard]] std::int64_t boot_clock_ns();
void boot_clock_sleep(std::chrono::nanoseconds time);

class BootClock {
 public:
  virtual ~BootClock() = default;
  [[nodiscard]] virtual std::int64_t now_ns() = 0;
  virtual void sleep(std::chrono::nanoseconds time) = 0;
};

// For simulations, as long as it lives. The clock outlives it.
class ReplacedBootClock {
 public:
  explicit ReplacedBootClock(BootClock& clock);
  ~ReplacedBootClock();
  ReplacedBootClock(const ReplacedBootClock&) = delete;
  ReplacedBootClock& operator=(const ReplacedBootClock&) = delete;

 private:
  BootClock* before_;
};

}  // namespace farheap::os
