// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The blocks that are out of view and still in memory, and how many pages of them there should be.
//
// Thread-safety: none of its own; the pager's mutex guards it.
#pragma once

#include <algorithm>

#include "pager/policy.hpp"
#include "pager/probation_share.hpp"

namespace farheap::pager {

class Probation : public BlockList {
 public:
  Probation(PageTable& table, std::uint32_t most_percent) : BlockList(table, Queue::kProbation), share_(most_percent) {}

  // Probation asks whether a page is in use. Of one that is foreseen to be needed last there is nothing to ask: the
  // more victims are such, the less memory is given to it.
  [[nodiscard]] std::uint64_t target(std::uint64_t memory_pages, std::uint64_t foreseen_percent) const {
    const std::uint64_t most = share_.percent();
    const std::uint64_t least = std::min(most, kForeseenPercent);
    return memory_pages * (most * 100 - (most - least) * foreseen_percent) / 10'000;
  }
  // As ProbationShare's. `leaving`: pages that are being written, and may still be touched here.
  void touched(bool here, std::uint64_t leaving, std::uint64_t left) { share_.touched(here, pages() + leaving, left); }

 private:
  static constexpr std::uint64_t kForeseenPercent = 2;  // of memory, where all victims are foreseen
  ProbationShare share_;
};

}  // namespace farheap::pager
