// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which allocation sites' small objects are to lie together: those that are touched about as often for their size
// (DESIGN.md 4.15; seed 001 calls it the hotness of an object). Sites that are touched more often than others get a
// *region*, chunks of memory of their own. All others lie where they would without a plan, so that what is rarely
// touched is in nobody's way.
//
// Sites that are as hot as each other, but in different phases of the program, get a region each where that saves more:
// then memory need hold only those of one phase at a time. Phases are told from the order in which small objects were
// touched (touch_phases.hpp); what it takes to bring in those of the next one is not counted.
//
// Without a plan objects of one size class lie mixed, and those of different classes do not. Whether neighbours are
// touched together, and so come into memory by one read, a profile does not tell. So of a class that is sorted into
// several regions only the touches of one are taken to miss without a plan: those of the region that has most. And a
// site of whose objects too few were seen is in no region, and may be as hot as any: what it misses nobody saves.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.hpp"
#include "profile/profile.hpp"

namespace farheap::plan {

// Of one site.
struct SmallObjects {
  std::uint32_t site = 0;
  unsigned size_class = 0;  // heap/size_classes.hpp
  double bytes = 0;         // at their peak
  double touches = 0;
  std::uint64_t seen_objects = 0, seen_touches = 0;  // of which that is an estimate (profile.hpp)
  // The share of its touches that came in each phase. Empty: not known, and taken to be as those of all are.
  std::vector<double> in_phases;
};

struct RegionChoice {
  std::vector<PlannedRegion> regions;  // the hottest first; their sites are those of the argument
  RegionSaving saving;
};

// No regions where sites are about as hot as each other, or where to sort them would save little: of the touches that
// miss memory when half of it is there, a fifth at the least. All phases count alike. Requires: in_phases are of one
// length, but for empty ones.
[[nodiscard]] RegionChoice choose_regions(std::span<const SmallObjects> sites);

// Gives the plan the regions of the process's small objects. Sites that it does not name yet join it, by as many frames
// of their stacks as tell them from those of other regions, and of none.
void plan_regions(const profile::ProcessProfile& process, Plan& plan);

}  // namespace farheap::plan
