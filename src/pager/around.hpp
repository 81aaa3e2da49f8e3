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

  // How many pages of the store come with a missed one. A stream fetches its window.
  [[nodiscard]] std::uint32_t pages(Extent& extent, const Streams::Advice& advice) {
    if (advice.sequential && advice.pages >= Streams::kSweepPages) {
      extent.swept_order = std::min<std::uint8_t>(extent.swept_order + 2, 6);
    } else if (!advice.sequential) {
      extent.swept_order /= 2;
    }
    const std::uint32_t around = advice.sequential ? advice.pages : neighbours_.pages(extent);
    return std::min(std::max(around, sure_pages(extent)), most_);
  }
  // So many of them are no guess.
  [[nodiscard]] std::uint32_t sure_pages(const Extent& extent) const {
    const std::uint32_t hinted = extent.hint == HintKind::kStream ? 64u : 1u;
    return std::max({1u << extent.swept_order, hinted, least_});
  }
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
