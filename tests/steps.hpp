// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How long tests go on that try many things. Under a sanitizer a step takes two to twenty times as long: there they
// take a part of their steps, and all of them in `./dev test --full`.
#pragma once

#include <algorithm>
#include <cstdlib>

namespace farheap::test {

// One `part`-th of `all`, at least 1, where it is to be short.
template <typename Number>
Number steps(Number all, [[maybe_unused]] Number part) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  if (std::getenv("FARHEAP_ALL_STEPS") == nullptr) return std::max<Number>(all / part, 1);
#endif
  return all;
}

}  // namespace farheap::test
