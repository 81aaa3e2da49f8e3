// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pager without threads, in a world of plain arrays: whoever touches a page does what the evictor does, too.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "array_world.hpp"

namespace farheap::pager::testing {

class LonePagerTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kPages = 4096, kMemory = 1024;
  // Returns whether the page was in view.
  bool write(PageNumber page) {
    bool was_in_view = true;
    while (view_.touch(page, [](PageBytes& bytes) { bytes.fill(std::byte{1}); })) {
      was_in_view = false;
      pager_->fault(page, true, buffer_[0].data());
      for (int i = 0; i < 100 && pager_->evict_once() == Pager::Evicted::kWorked; ++i) continue;
    }
    return was_in_view;
  }
  ArrayView view_{kPages};
  MapBacking backing_{{}, 1};
  FixedBudget budget_{kMemory};
  base::RunCounters counters_;
  std::unique_ptr<Pager> pager_ =
      Pager::make(view_, backing_, budget_, counters_, {.capacity_pages = kPages, .read_ahead_pages = 0}).value();
  std::vector<PageBytes> buffer_{512};
};

}  // namespace farheap::pager::testing
