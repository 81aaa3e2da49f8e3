// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace farheap::bench {

[[noreturn]] inline void stop(const std::string& why) {
  std::fprintf(stderr, "graph: %s\n", why.c_str());
  std::exit(1);
}

}  // namespace farheap::bench
