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

// The sample that tells most of a process. That of the whole run; or, where it has few pages, because there was much to
// see, that of the beginning in detail: if all of the memory was used there, several times.
struct CurveSample {
  profile::Touches touches;
  double times = 1;  // in the whole run there were so many times as many uses as in the part that it is of
};
[[nodiscard]] CurveSample curve_sample(const profile::ProcessProfile& process);

struct MemoryPoint {
  std::uint64_t memory_bytes = 0;
  double lru_misses = 0;   // pages that least recently used reads, first uses left out
  double best_misses = 0;  // ... that an oracle does (optimum.hpp)
};

struct MemoryCurve {
  double pages_for_one = 1;         // each page of the sample speaks for so many
  std::uint64_t sampled = 0;        // pages
  std::uint64_t uses = 0;           // of them, that were seen
  double times = 1;                 // as CurveSample's
  std::uint64_t whole_bytes = 0;    // with so much nothing is missed
  std::vector<MemoryPoint> points;  // from little memory to much; empty: too little was seen
};

// At `points` sizes, evenly up to whole_bytes. Requires: points > 0.
[[nodiscard]] MemoryCurve memory_curve(const CurveSample& sample, unsigned points = 20);

}  // namespace farheap::plan
