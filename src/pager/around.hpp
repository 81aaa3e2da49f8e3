// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many pages come in with one that was touched: where sweeps went through, a piece of one; where a program touches
// its memory for the first time in order, as much as it has earned by that; anything else what Neighbours advises.
//
// Thread-safety: none of its own; the pager's mutex guards it.
#pragma once

#include <algorithm>

#include "pager/neighbours.hpp"
#include "pager/page_table.hpp"
#include "pager/streams.hpp"

namespace farheap::pager {

class Around {
 public:
  Around(std::uint32_t block_min_pages, std::uint32_t block_max_pages)
      : least_(block_min_pages), most_(block_max_pages), fresh_(block_max_pages) {}

  // A window of pages around the one that was touched: `sure` of them come into view, the rest on probation.
  struct Window {
    std::uint32_t pages = 1, sure = 1;
  };
  // For a page of the store. A stream fetches its window. `near`: it is in memory, where neighbours that were not
  // asked for would cost as much later.
  [[nodiscard]] Window missed(Extent& extent, const Streams::Advice& advice, bool near) {
    if (near && !advice.sequential) return touched(extent);
    if (advice.sequential && advice.pages >= Streams::kSweepPages) {
      extent.swept_order = std::min<std::uint8_t>(extent.swept_order + 2, 6);
    } else if (!advice.sequential) {
      extent.swept_order /= 2;
    }
    Window window = touched(extent);
    window.pages = std::max(advice.sequential ? advice.pages : neighbours_.pages(extent), window.pages);
    return {std::min(window.pages, most_), window.sure};
  }
  // For a page on probation.
  [[nodiscard]] Window touched(Extent& extent) {
    const std::uint32_t hinted = extent.hint == HintKind::kStream ? 64u : 1u;
    const std::uint32_t known = std::min(std::max({1u << extent.swept_order, hinted, least_}), most_);
    const std::uint32_t sure = std::max(known, together(extent));
    return {sure, sure > known && Neighbours::asks(extent) ? known : sure};
  }
  // So many pages around a victim leave with it.
  [[nodiscard]] std::uint32_t together(Extent& extent) const { return std::min(neighbours_.sure_pages(extent), most_); }
  // So many pages that were guessed were touched, or left untouched.
  void guessed(Extent& extent, bool right, std::uint32_t pages) { neighbours_.learn(extent, right, pages); }

  // A page was touched that was never there. Its stream goes on where the caller says then.
  [[nodiscard]] Streams::Advice touched_fresh(PageNumber page) { return fresh_.touched(page); }
  void fresh_continues_at(PageNumber page) { fresh_.continues_at(page); }

 private:
  std::uint32_t least_, most_;
  Neighbours neighbours_;
  Streams fresh_;
};

}  // namespace farheap::pager
