// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which sites' memory stays for a phase: the greatest priority for the room there is (seed 004, "Prioritizing Data
// Objects" and "Selecting Objects to be Locked in DRAM").
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profile/access_counts.hpp"

namespace farheap::plan {

// The seed names no values. With both 1 the priority is accesses a byte, and the choice is the best that there is for
// what can be divided.
struct PriorityModel {
  double alpha = 1;
  double beta = 1;
};

// accesses^alpha / bytes^beta. Requires: bytes > 0.
[[nodiscard]] double priority(std::uint64_t accesses, std::uint64_t bytes, const PriorityModel& model);

// A site: the bytes that it has allocated, and the accesses of a phase to them.
struct SiteUse {
  profile::SiteId site = 0;
  std::uint64_t bytes = 0;
  std::uint64_t accesses = 0;
};

// A part of a site's memory: bytes [first, first + bytes) of it, pages as wholes.
struct KeptPart {
  profile::SiteId site = 0;
  std::uint64_t first = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const KeptPart&, const KeptPart&) = default;
};

// Takes the highest priority first; what does not fit is halved, at a page, and both halves are considered anew. A part
// of less than a 512th of the room is cut to what fits instead, so that the parts are bounded also where halves are
// worth less than wholes (alpha > beta). Equal priorities: the lower site, then the lower address. Sites are rounded up
// to pages; those that are not accessed are never kept. The result is in ascending order, with neighbours joined.
// Requires: each site once; finite exponents.
[[nodiscard]] std::vector<KeptPart> choose_kept(std::span<const SiteUse> sites, std::uint64_t room_bytes,
                                                const PriorityModel& model = {});

}  // namespace farheap::plan
