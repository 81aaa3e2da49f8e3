// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many pages Farheap's own pager would read in how much memory, told from the order in which a sample of a
// program's pages was used: the pager is driven (replay.hpp) with all uses that the sample speaks for
// (sampled_world.hpp).
//
// Thread-safety: a pure function.
#pragma once

#include <vector>

#include "plan/memory_curve.hpp"

namespace farheap::plan {

// Pages read at each size of the curve, which is of the same touches.
[[nodiscard]] std::vector<double> pager_reads(const profile::Touches& touches, const MemoryCurve& curve);

}  // namespace farheap::plan
