// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Thresholds of merging, chosen by what they would cost instead of by trial: fewer phases are fewer hints, and hints
// that fit each context less well. (Seed 001 leaves them to be tried by hand.)
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "plan/phases.hpp"
#include "plan/placement.hpp"

namespace farheap::plan {

struct CostModel {
  double seconds_per_hint = 0;         // one site's, at one change of phase
  double seconds_per_access_away = 0;  // an access to memory that a phase does not keep, in the mean
  std::uint64_t room_bytes = 0;        // for what phases keep
  PriorityModel priority = {};
};

// Seconds of hints and of accesses to what is not kept, if the program runs as in the profile. `site_bytes[s]` is what
// site s has allocated; sites beyond its end have nothing.
[[nodiscard]] double cost_of(const profile::ContextTree& tree, const Phases& phases,
                             std::span<const std::uint64_t> site_bytes, const CostModel& model);

// The cheapest of a bounded number of thresholds that occur in the profile; of equals, those that merge most.
[[nodiscard]] MergeThresholds cheapest_thresholds(const profile::ContextTree& tree,
                                                  std::span<const std::uint64_t> site_bytes, const CostModel& model);

}  // namespace farheap::plan
