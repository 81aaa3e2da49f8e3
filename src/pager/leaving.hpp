// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A round of the evictor, between choosing blocks and giving their memory back.
//
// Thread-safety: one evictor's own.
#pragma once

#include <cstdint>
#include <vector>

#include "pager/page_table.hpp"
#include "pager/view.hpp"

namespace farheap::pager {

// A page to write: a part of the last write if it follows that, and its bytes those.
inline void add_page(std::vector<Backing::Write>& writes, PageNumber page, const std::byte* bytes,
                     std::uint32_t most_pages, bool soon = false) {
  if (!writes.empty()) {
    Backing::Write& last = writes.back();
    const bool follows =
        last.run.first + last.run.count == page && last.from + last.run.count * base::kPageBytes == bytes;
    if (follows && last.soon == soon && last.run.count < most_pages) {
      ++last.run.count;
      return;
    }
  }
  writes.push_back({{page, 1}, bytes, soon});
}

// What is about to leave: blocks, and what became of each of their pages.
// One object for all rounds: what it has allocated once, it keeps.
struct Leaving {
  struct Page {
    PageNumber page;
    BlockId block;
    std::uint32_t index;  // in the block
    PageHash hash;
    enum : std::uint8_t { kClean, kZero, kDirty } found;
    bool soon;  // Backing::Write's
  };
  std::vector<BlockId> blocks;
  std::uint64_t expected = 0;  // pages of the blocks that the room (Room) does not know yet to have left, or to stay
  std::vector<Page> pages;
  std::vector<Backing::Write> writes;
  std::vector<Backing::Write> offers;  // of what is stored already
  std::uint64_t dirty_pages = 0;

  // Pages of one block that follow each other and whose staging places are given back.
  struct Part {
    PageRun run;
    std::size_t from;  // of `pages`
    bool back;         // touched meanwhile, and in view again
  };
  std::vector<Part> parts;
  std::vector<PageRun> runs;  // the same, as the view wants them

  void clear() {
    blocks.clear();
    expected = 0;
    pages.clear();
    writes.clear();
    offers.clear();
    parts.clear();
    runs.clear();
    dirty_pages = 0;
  }
};

}  // namespace farheap::pager
