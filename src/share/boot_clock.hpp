// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Time that goes on while the machine sleeps and is never set: what leases are counted by.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <ctime>

namespace farheap::share {

[[nodiscard]] inline std::int64_t boot_clock_ns() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace farheap::share
