// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which site of a plan a call of this process was made at: stacks are compared by file, build-id and offset, as the
// plan names them.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "plan/plan.hpp"
#include "profile/call_sites.hpp"
#include "profile/code_places.hpp"

namespace farheap::plan {

// How sites are to be found for a plan: as deep as it names them.
inline constexpr profile::CallSites::Limits kPlannedStacks = {.tree_frames = 1u << 16, .frames = kNameFrames};

class PlannedSites {
 public:
  static constexpr std::uint32_t kNotPlanned = ~std::uint32_t{0};
  // Of Plan::sites. Requires: `site` is of `calls`; the same plan and the same calls each time.
  [[nodiscard]] std::uint32_t of(profile::SiteId site, const profile::CallSites& calls, const Plan& plan);

  // In the plan's files; file 0: in none of them.
  [[nodiscard]] profile::CodePlace place_of(std::uintptr_t address, const Plan& plan);

 private:
  [[nodiscard]] bool look_up(profile::SiteId site, const profile::CallSites& calls, const Plan& plan, SiteName& name);

  profile::CodePlaces code_;
  unsigned code_reads_ = 0;
  std::unordered_map<profile::SiteId, std::uint32_t> known_;
};

}  // namespace farheap::plan
