// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which pages two maps have in different slots: two versions of a segment side by side. What both refer to is not
// looked into, so the cost follows what has changed between them.
//
// Thread-safety: a plain function; the store's.
#pragma once

#include <functional>
#include <span>

#include "pager/view.hpp"
#include "segment/block_tree.hpp"

namespace farheap::segment {

struct MapSide {
  Store* store = nullptr;  // one for both sides: slots are comparable, otherwise every page is a difference
  BlockTree::Root map;
  std::uint64_t end_slot = 0;  // of the store: a tree with more blocks than that is none
};

struct PageDifference {
  pager::PageNumber page;
  SlotRef a, b;  // nowhere: that side has no such page
};

// Those of one leaf at a time (512 pages), by number. Stops with the first status that is an error.
using VisitDifferences = std::function<Status(std::span<const PageDifference>)>;
[[nodiscard]] Status for_each_difference(const MapSide& a, const MapSide& b, const VisitDifferences& visit);

}  // namespace farheap::segment
