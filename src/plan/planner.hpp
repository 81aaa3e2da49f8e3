// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes a plan of a profile: which uses of which large object follow each other, what of it is a round that the program
// repeats, and how much of it can be foreseen at all. (The idea of planning objects by what a profile says of them:
// seed 001; of planning parts of memory instead: DESIGN.md 4.15.)
//
// What is foreseen is asked of the profile itself: a use is foreseen if the pages beside it, without it, tell it, or
// the round before does. An object whose uses cannot be told so is not planned; a program of which little can be told
// gets no plan.
//
// Thread-safety: pure functions.
#pragma once

#include "plan/kernel_hints.hpp"
#include "plan/plan.hpp"
#include "plan/planned_order.hpp"
#include "profile/profile.hpp"

namespace farheap::plan {

// The process whose pages were seen to be used most; nullptr: no order was seen.
[[nodiscard]] const profile::ProcessProfile* process_to_plan(const profile::Profile& profile);

// A plan, and the profile's process that it was made of.
struct MadePlan {
  Plan plan;
  const profile::ProcessProfile* process = nullptr;
};

// Makes it of that process, or, if none can be made of it, of the one that comes next, and so on. kInvalidArgument: the
// profile tells of no such process, or not enough of it; kUnavailable: too little of what it does can be foreseen. Both
// say what there is of the first.
[[nodiscard]] Result<MadePlan> make_plan(const profile::Profile& profile, const std::string& name);

// The objects of a phase of its plan, as they were in that process: all that were one, one after the other.
[[nodiscard]] std::vector<LiveObject> recorded_objects(const profile::ProcessProfile& process,
                                                       const PlannedPhase& phase);

// All large objects of that process that were seen to be used, whether or not their uses could be foreseen, as the
// seeds' hints take them. kInvalidArgument as above.
[[nodiscard]] Result<HintPlan> plan_hints(const profile::Profile& profile, const std::string& name);

}  // namespace farheap::plan
