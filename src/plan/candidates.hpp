// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a plan is worth: how much would be read with it, and with what could be done instead. All candidates meet the
// same uses: those of the profile that the plan was made of, all that its sample speaks for. Where the plan has a
// round, that is gone through a few times more, and the last of these count: a program repeats it for as long as it
// runs, and what is done once weighs the less.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/kernel_hints.hpp"
#include "plan/planner.hpp"

namespace farheap::plan {

// Pages that are read again.
struct CandidateReads {
  std::uint64_t memory_bytes = 0;
  double share = 0;  // of all memory that was used
  double lru = 0;       // what was used least recently leaves first
  double locked = 0;    // the same, beside the seeds' locked objects
  double planless = 0;  // Farheap's own policy
  double planned = 0;   // Farheap, following the plan
  double best = 0;      // what is needed last leaves first
};

struct PlanScore {
  bool of_round = false;  // of one round; otherwise of all that was recorded
  std::vector<CandidateReads> levels;
  // Nowhere does the plan read much less, and somewhere much more, than Farheap does without it.
  [[nodiscard]] bool is_in_vain() const;
};

// In 90, 70 and 50 % of memory. `hints`: of the same profile, for the seeds' candidate; nullptr: it is not told.
[[nodiscard]] PlanScore score_plan(const MadePlan& made, const HintPlan* hints);

}  // namespace farheap::plan
