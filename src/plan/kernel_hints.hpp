// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The seeds' hints for kernel swap: which parts of the objects that live are locked in memory (seed 004, "Selecting
// Objects to be Locked in DRAM"). It is what Farheap's own plans are measured against.
//
// A program that was not compiled anew has no contexts, so the whole run is one phase; and an access is a use of a page
// as the profile has seen it.
//
// Thread-safety: values, and pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/placement.hpp"
#include "plan/plan.hpp"
#include "plan/planned_order.hpp"

namespace farheap::plan {

enum class HintKind : std::uint32_t { kLock = 1, kAdvise = 2 };

struct HintPlan {
  Plan plan;                            // has one phase
  std::vector<std::uint64_t> accesses;  // of its objects, in the profile
  [[nodiscard]] const PlannedPhase& phase() const { return plan.phases.front(); }
  friend bool operator==(const HintPlan&, const HintPlan&) = default;
};

// Of a plan, which does not say how often objects were accessed: the uses of their parts stand for that, in all phases.
// What comes next is told as in the first phase that has the object.
[[nodiscard]] HintPlan hints_of(Plan plan);

// Addresses, whole pages.
struct PageRange {
  std::uint64_t first = 0, bytes = 0;
  friend bool operator==(const PageRange&, const PageRange&) = default;
};

// For each of the objects what is kept of it, in ascending order; together no more than `room_bytes`. An object that is
// larger than in the profile is taken to have as many accesses a byte. `objects`: by address; pages that they share
// with something else are left out.
[[nodiscard]] std::vector<std::vector<PageRange>> choose_locked(const HintPlan& hints,
                                                                std::span<const LiveObject> objects,
                                                                std::uint64_t room_bytes,
                                                                const PriorityModel& model = {});

// What is in `all` and not in `taken`. Requires: each in ascending order, without overlaps.
[[nodiscard]] std::vector<PageRange> without(std::span<const PageRange> all, std::span<const PageRange> taken);

// The whole pages of an object.
[[nodiscard]] PageRange pages_of(const LiveObject& object);

}  // namespace farheap::plan
