// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// When the parts of an object are used, told from the parts whose uses are known: between two of them it is as between
// them. So what was seen of a small object's pages tells of all pages of a large one that is used alike.
//
// What is used again soon is one use, which takes a while. When it comes is told by its place in the whole, and grows
// with it; how long it takes is told in pages, and does not: what a program comes back to at once (a neighbour's row)
// lies as near in a larger input.
//
// Times are those of a Plan: what happens once comes first, and then a round, again and again.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace farheap::plan {

struct PlanTimes {
  double once = 0;   // what happens once takes so long,
  double round = 0;  // and a round then; 0: there is none
  [[nodiscard]] double end() const { return once + round; }
};

struct Use {
  double time = 0;   // of its middle
  double pages = 0;  // that the program uses meanwhile
};

// The uses of one part, in their order.
struct KnownUses {
  double place = 0;  // from 0 to 1: where in the object
  std::vector<Use> uses;
};

// At `place`, in their order. Beyond the first and the last known part it goes on as between the two next to it. Uses
// in a round may come before its begin there: then they are at its end. `known`: by place.
[[nodiscard]] std::vector<Use> uses_at(std::span<const KnownUses> known, double place, const PlanTimes& times);

// What makes uses of the times at which pages were seen to be used.
struct Joining {
  double soon = 0;          // those that follow each other within this time are one use,
  double longest = 0;       // unless that took longer than this: then the page is used again and again
  double pages_a_time = 0;  // that the program uses in one unit of time
};
struct SeenPart {
  double place = 0;
  std::vector<std::uint32_t> times;  // in their order
};
// How long a use takes is the same for parts that lie together: not each of its ends was seen, but its begin was.
[[nodiscard]] std::vector<KnownUses> joined_uses(std::span<const SeenPart> parts, const Joining& joining);

}  // namespace farheap::plan
