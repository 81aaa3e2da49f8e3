// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much Farheap's own pager would read in how much memory, and how long the program would take, told from the order
// in which a sample of its pages was used: the pager is driven (replay.hpp) with all uses that the sample speaks for
// (sampled_world.hpp).
//
// Thread-safety: a pure function.
#pragma once

#include <vector>

#include "plan/memory_curve.hpp"
#include "plan/planner.hpp"
#include "plan/replay.hpp"

namespace farheap::plan {

struct PagerPrediction {
  double reads = 0;    // pages
  double seconds = 0;  // 0 where the speeds are not known
};

// At each size of the curve, which is of the same touches. With a plan, it is followed, for its objects as they were in
// the recorded run. Those that lived one after the other are taken to be there at once: the program touches
// only the one that lives then. nullptr: there is no plan.
[[nodiscard]] std::vector<PagerPrediction> pager_curve(const profile::Touches& touches, const MemoryCurve& curve,
                                                       const Speeds& speeds = {}, const MadePlan* made = nullptr);

}  // namespace farheap::plan
