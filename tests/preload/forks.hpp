// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What cases about forks have in common.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "cases.hpp"

namespace cases {

inline constexpr std::size_t kShared = 48 * kMebibyte;

// What both sides of a fork do: find what was there, write something else, find that.
inline void verify_and_rewrite(void* at, std::size_t bytes, std::uint64_t was, std::uint64_t now) {
  CHECK_FILLED(at, bytes, was);
  fill(at, bytes, now);
  CHECK_FILLED(at, bytes, now);
}

template <class Body>
int in_child(Body body) {
  fflush(stdout);
  const int child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    body();
    _exit(0);
  }
  return child;
}

}  // namespace cases
