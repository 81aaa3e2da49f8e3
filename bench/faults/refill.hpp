// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

namespace farheap::bench::faults {

struct RefillShape {
  unsigned threads = 1;
  bool shared = true;
  std::size_t bytes = std::size_t{1} << 30;
  double seconds = 2;
  std::uint64_t seed = 1;
};

// Threads read pages of a file in memory at random while one more takes 2 MiB after 2 MiB out of the page tables. The
// kernel serves all of it by itself. Says touches and faults a second under the name KIND_THREADS.
void run_refill(const RefillShape& shape);

}  // namespace farheap::bench::faults
