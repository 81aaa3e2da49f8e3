// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A plan's phase, for the objects that are there: in which order their pages will be used (pager/page_order.hpp).
//
// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <span>

#include "pager/page_order.hpp"
#include "plan/plan.hpp"

namespace farheap::plan {

struct LiveObject {
  std::uint32_t object = 0;            // of PlannedPhase::objects
  std::uint64_t first = 0, bytes = 0;  // counted from page 0's first byte
  friend auto operator<=>(const LiveObject&, const LiveObject&) = default;
};

// An order of more visits is not made. Each takes some 200 bytes, which are no part of what pages: all of them a tenth
// of the run's memory at the most.
inline constexpr std::uint64_t kMostVisits = std::uint64_t{1} << 22;
[[nodiscard]] constexpr std::uint64_t most_visits_in(std::uint64_t memory_bytes) {
  return std::min(kMostVisits, memory_bytes / 2048);
}
// How many visits an order would have, at the most.
[[nodiscard]] std::uint64_t most_visits(const PlannedPhase& phase, std::span<const LiveObject> objects);

[[nodiscard]] pager::PageOrder order_of(const PlannedPhase& phase, std::span<const LiveObject> objects);

}  // namespace farheap::plan
