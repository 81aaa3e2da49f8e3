// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/page_table.hpp"

#include <algorithm>

namespace farheap::pager {

Result<PageTable> PageTable::make(std::uint64_t capacity_pages) {
  PageTable table;
  table.capacity_pages_ = capacity_pages;
  auto extents = os::ReservedArray<std::unique_ptr<Extent>>::make(capacity_pages / kExtentPages + 1);
  if (!extents) return fail(std::move(extents.error()));
  // One block a page in memory at the worst.
  auto blocks = os::ReservedArray<Block>::make(std::min<std::uint64_t>(capacity_pages, 1ull << 30) + 1);
  if (!blocks) return fail(std::move(blocks.error()));
  table.extents_ = std::move(*extents);
  table.blocks_ = std::move(*blocks);
  return table;
}

PageTable::~PageTable() {
  if (extents_.capacity() == 0) return;  // moved away
  for (std::uint64_t i = 0; i < extents_end_; ++i) extents_[i].reset();
  for (BlockId id = 1; id <= blocks_made_; ++id) blocks_[id] = Block{};
}

Extent& PageTable::extent(PageNumber page) {
  auto& slot = extents_[page / kExtentPages];
  if (!slot) {
    slot = std::make_unique<Extent>();
    const PageNumber first = page / kExtentPages * kExtentPages;
    if (streamed_.overlap(first, first + kExtentPages)) slot->hint = HintKind::kStream;
    extents_end_ = std::max(extents_end_, page / kExtentPages + 1);
  }
  return *slot;
}

void PageTable::note_away(std::atomic<std::uint8_t>* away) {
  away_ = away;
  for (PageNumber page = 0; page < extents_end_ * kExtentPages; ++page) {
    if (find(page) == nullptr) {
      page += kExtentPages - 1;
    } else if (is_away(state(page))) {
      away_[page].store(1, std::memory_order_relaxed);
    }
  }
}

void PageTable::list_for_flushes(FlushList& list) {
  flush_list_ = &list;
  for (PageNumber page = 0; page < extents_end_ * kExtentPages; ++page) {
    if (find(page) == nullptr) {
      page += kExtentPages - 1;
    } else if (is_in_memory(state(page))) {
      list.note_moved(page, true);
    }
  }
}

BlockId PageTable::new_block(PageNumber first, std::uint32_t count) {
  BlockId id = free_blocks_;
  if (id != 0) {
    free_blocks_ = blocks_[id].newer;
  } else {
    id = ++blocks_made_;
  }
  Block& block = blocks_[id];
  block = Block{};
  block.first = first;
  block.count = block.pages = count;
  return id;
}

void PageTable::free_block(BlockId id) {
  blocks_[id] = Block{};
  blocks_[id].newer = free_blocks_;
  free_blocks_ = id;
}

PageRun PageTable::run_around(PageNumber page, PageState state, PageRun within) const {
  PageNumber first = page;
  PageNumber end = page + 1;
  while (first > within.first && this->state(first - 1) == state) --first;
  while (end < within.first + within.count && this->state(end) == state) ++end;
  return {first, static_cast<std::uint32_t>(end - first)};
}

PageRun PageTable::next_run(PageNumber from, PageNumber end, PageState state, BlockId owner) const {
  while (from < end) {
    const PageNumber extent_end = std::min<PageNumber>((from / kExtentPages + 1) * kExtentPages, end);
    const Extent* extent = find(from);
    if (extent == nullptr && state != PageState::kFresh) {
      from = extent_end;
      continue;
    }
    auto fits = [&](PageNumber page) {
      if (extent == nullptr) return true;
      const auto at = page % kExtentPages;
      return extent->state[at] == state && (owner == 0 || extent->tag[at] == owner);
    };
    while (from < extent_end && !fits(from)) ++from;
    if (from == extent_end) continue;
    PageNumber stop = from + 1;
    while (stop < extent_end && fits(stop)) ++stop;
    return {from, static_cast<std::uint32_t>(stop - from)};
  }
  return {end, 0};
}

}  // namespace farheap::pager
