// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How long randomised tests go on. Under the thread sanitizer a step takes twenty times as long: there they take a part
// of their steps, but for `./dev test --full`.
#pragma once

#include <algorithm>
#include <cstdlib>

namespace farheap::pager::testing {

inline int steps(int all, [[maybe_unused]] int part_for_threads) {
#ifdef __SANITIZE_THREAD__
  if (std::getenv("FARHEAP_ALL_STEPS") == nullptr) return std::max(all / part_for_threads, 1);
#endif
  return all;
}

}  // namespace farheap::pager::testing
