// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many processors there are for this process.
//
// Thread-safety: any thread.
#pragma once

#include <sched.h>

#include <atomic>

namespace farheap::base {

// Those that the thread that asked first might run on then, at least 1: the same for all who ask. (A control group's
// quota is not looked at.)
[[nodiscard]] inline unsigned usable_processors() {
  static constinit std::atomic<unsigned> found{0};
  unsigned answer = found.load(std::memory_order_relaxed);
  if (answer != 0) return answer;
  cpu_set_t set;
  answer = sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<unsigned>(CPU_COUNT(&set)) : 1;
  unsigned nobody = 0;
  return found.compare_exchange_strong(nobody, answer) ? answer : nobody;
}

}  // namespace farheap::base
