// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many processors there are for this process.
//
// Thread-safety: a plain function.
#pragma once

#include <sched.h>

namespace farheap::base {

// Those that the calling thread may run on, at least 1. (A control group's quota is not looked at.)
[[nodiscard]] inline unsigned usable_processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<unsigned>(CPU_COUNT(&set)) : 1;
}

}  // namespace farheap::base
