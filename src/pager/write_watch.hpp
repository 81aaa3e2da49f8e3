// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which victims are in use, because they were written to lately. The kernel notes the first write to each watched page
// by itself (View::take_written()): 1.1 us for the program, where a touch on probation costs it a fault. So what is
// written all the time never leaves the view. What is only read is still asked on probation.
//
// The kernel is asked for a whole extent at once: 20 us, and an interrupt to the other processors. What it says is kept
// until the hand comes by. It is asked again when so many victims have been looked at since as a quarter of memory
// holds: four times in a round of the hand at most.
//
// Thread-safety: none of its own; the pager's mutex guards it.
#pragma once

#include <cstdint>

#include "pager/page_table.hpp"
#include "pager/view.hpp"

namespace farheap::pager {

class WriteWatch {
 public:
  // Both must outlive it.
  WriteWatch(View& view, PageTable& table) : view_(view), table_(table) {}

  // Whether a page of the block, which is in view and about to leave, was written to since this was asked of it before.
  // Not of one that came since the kernel was asked: that it was written to once says little. Never of a block that a
  // sweep brought, or that is to leave at once.
  [[nodiscard]] bool was_written(BlockId id, std::uint64_t memory_pages);

 private:
  static constexpr std::uint32_t kMostPages = 7;  // larger blocks came with a sweep
  static constexpr std::uint64_t kPartOfRound = 4;
  void ask(Extent& extent, PageNumber first);

  View& view_;
  PageTable& table_;
  std::uint32_t looked_at_ = 1;  // pages
  bool is_known_ = true;         // the view says what was written
};

}  // namespace farheap::pager
