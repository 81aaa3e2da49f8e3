// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For those who change a thing only if it is still as they saw it, and begin anew when somebody else was quicker.
//
// Thread-safety: any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

namespace farheap::engines {

// By chance, up to twice as long with each race that was lost, so that those who race do not come back together.
inline void pause_for_others(unsigned lost_races, unsigned shortest_us = 50) {
  thread_local std::minstd_rand random{std::random_device{}()};
  const auto longest = shortest_us << std::min(lost_races, 6u);
  std::this_thread::sleep_for(std::chrono::microseconds(random() % longest));
}

}  // namespace farheap::engines
