// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much a run would read with a plan, and with the other candidates. All candidates meet the same uses, those that
// the recorded run's sample speaks for (sampled_world.hpp); Farheap's own are replayed through its pager.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/kernel_hints.hpp"
#include "plan/pager_curve.hpp"
#include "plan/planner.hpp"

namespace farheap::plan {

// Pages that are read again.
struct ScoredLevel {
  std::uint64_t memory_bytes = 0;
  double share = 0;                   // of all memory that was used
  double lru = 0;                     // what was used least recently leaves first
  double locked = 0;                  // the same, beside the seeds' locked objects
  PagerPrediction planless, planned;  // Farheap, with its own policy and following the plan
  double best = 0;                    // what is needed last leaves first
};

struct PlanScore {
  std::vector<ScoredLevel> levels;
  // Nowhere does the plan cost less, and somewhere so much more than Farheap does without it that no known error of
  // replays explains it.
  [[nodiscard]] bool is_in_vain() const;
};

// In 90, 70 and 50 % of memory, as near as the sample tells them. `hints`: of the same profile, for the seeds'
// candidate; nullptr: it is not told.
[[nodiscard]] PlanScore score_plan(const MadePlan& made, const Speeds& speeds, const HintPlan* hints);

}  // namespace farheap::plan
