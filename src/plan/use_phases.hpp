// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a process used when: the order in which pages of its large objects were used, cut into phases where the set of
// them that is used changes, and phases that use the same told to be one that comes again. (Phases by what is accessed:
// seed 004, "Verbose Contexts to Meaningful Phases"; here without contexts, of any program.)
//
// The order is of a sample of pages, and has no clock: a phase is as long as the uses seen in it. The same is done with
// the order in which small objects were touched (touch_phases.hpp).
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "profile/profile.hpp"

namespace farheap::plan {

struct UsePhase {
  std::uint32_t visits = 0;            // it came so often
  std::uint64_t uses = 0;              // in all visits
  std::vector<std::uint64_t> of_site;  // of them, of pages of each of UsePhases::sites; then of the rest
};

struct UsePhases {
  static constexpr std::size_t kMostSites = 64;
  std::vector<profile::SiteId> sites;  // of large objects that were used, the most used first; the rest is in none
  std::vector<UsePhase> phases;        // numbered as they came first
  std::vector<std::uint32_t> order;    // the numbers of phases, as they came
};

// Nothing of a process of which less than 64 uses were seen, or none of large objects. At most `most` phases: what is
// most alike is joined until it is so few.
[[nodiscard]] UsePhases use_phases(const profile::ProcessProfile& process, std::size_t most = 12);

// An order is looked at in so many pieces of one weight at the most, of so many uses at the least. In too small a piece
// what is used is chance.
struct PhasePieces {
  std::size_t most = 256, least_uses = 16;
};
struct CutUses {
  std::vector<UsePhase> phases;         // numbered as they came first; `of_site` by what was used
  std::vector<std::uint32_t> order;     // the numbers of phases, as they came
  std::vector<std::uint32_t> phase_of;  // by use
};
// `uses`: what was used, in order; `weights`: of each use; empty: all weigh the same. Requires: each use is below
// `kinds`.
[[nodiscard]] CutUses cut_into_phases(std::span<const std::uint32_t> uses, std::size_t kinds, PhasePieces pieces,
                                      std::size_t most_phases, std::span<const std::uint32_t> weights = {});

}  // namespace farheap::plan
