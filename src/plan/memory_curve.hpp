// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many pages a program would miss in how much memory, told from the order in which a sample of its pages was used.
// (SHARDS: Waldspurger et al., "Efficient MRC Construction with SHARDS", FAST 2015. The size of the sample is taken as
// it turned out, not as it was drawn: the pages that were used are known in number.)
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/profile.hpp"

namespace farheap::plan {

struct MemoryPoint {
  std::uint64_t memory_bytes = 0;
  double lru_misses = 0;   // pages that least recently used reads, first uses left out
  double best_misses = 0;  // ... that an oracle does (optimum.hpp)
};

struct MemoryCurve {
  double pages_for_one = 1;         // each page of the sample speaks for so many
  std::uint64_t sampled = 0;        // pages
  std::uint64_t uses = 0;           // of them, that were seen
  std::uint64_t whole_bytes = 0;    // with so much nothing is missed
  std::vector<MemoryPoint> points;  // from little memory to much; empty: too little was seen
};

// At `points` sizes, evenly up to whole_bytes. Requires: points > 0.
[[nodiscard]] MemoryCurve memory_curve(const profile::Touches& touches, unsigned points = 20);

}  // namespace farheap::plan
