// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// First touches. A page that was never there reads as zeros: a block of them comes at once, or a whole huge page
// before it is touched.
#include <algorithm>

#include "pager/pager.hpp"

namespace farheap::pager {

namespace {

constexpr std::uint32_t kMostExpected = 128;  // of what is larger not all may be touched
constexpr std::uint32_t kFreshPages = 16;     // a first touch populates 64 KiB, more when the next one follows

// Zeros to copy from: never written, so the kernel backs it with its one zero page.
alignas(base::kPageBytes) const std::byte g_zeros[base::kHugePageBytes]{};

}  // namespace

void Pager::fill_fresh(PageNumber page) {
  counters_.faults_fresh.fetch_add(1, std::memory_order_relaxed);
  heat(page, base::Heat::kFresh);
  read_ahead_.touched_fresh(page);
  const auto advice = around_.touched_fresh(page);
  if (advice.sequential && advice.pages >= Streams::kSweepPages) policy_.swept(page, room_.limit());
  const std::uint32_t most =
      std::min<std::uint32_t>(options_.block_max_pages, std::max<std::uint64_t>(room_.limit() / 64, 1));
  const std::uint32_t at_once = read_ahead_.followed() ? PageOrder::kBlockPages : options_.block_max_pages;
  const std::uint32_t wanted =
      std::min(std::max(kFreshPages, advice.sequential ? advice.pages * 4 : 0), std::min(most, at_once));
  const std::uint32_t granted = wait_for_room(std::max(wanted, 1u));
  if (moving_.is_frozen() || table_.state(page) != PageState::kFresh) {  // while we waited
    view_.wake({page, 1});
    return;
  }
  const PageRun run = table_.run_around(page, PageState::kFresh, fetch_window(page, granted, advice.backward));
  around_.fresh_continues_at(advice.backward ? (run.first > 0 ? run.first - 1 : 0) : run.first + run.count);
  const BlockId id = table_.new_block(run.first, run.count);
  begin_filling(run, id);
  // They will be written, most likely; and what stays zero is never stored.
  if (!cut_.are_writes_forbidden() && !has_owners_) changes_.note_changed(run);
  const View::Guard guard = changes_.guard_of(run.first);
  mutex_.unlock();
  view_.put_in(run, g_zeros, guard);
  door_.lock(mutex_);
  finish_filling(run, id, false, false);
  read_ahead_.came(run, true);
}

// A huge page is one entry of the processor's translation buffers instead of 512, and no fault. It has to be there
// before anybody touches it: a fault leaves a table of small pages behind, even before it is answered. To take a part
// of it out, or to guard one, the kernel has to split it: where memory is half full already, that is going to happen
// soon.
void Pager::expect(PageNumber first, PageNumber end) {
  if (first < options_.huge_from) return;
  const std::uint64_t of_pages = end - first;
  while (first < end) {
    const PageRun extent{first / kExtentPages * kExtentPages, kExtentPages};
    const PageNumber stop = std::min<PageNumber>(end, extent.first + extent.count);
    expect_in(extent, {first, static_cast<std::uint32_t>(stop - first)}, of_pages);
    first = stop;
  }
}

// A piece that was given back and is handed out again is small enough to be filled at once by who wants it: that is a
// fault less, and it waits for nobody.
void Pager::expect_in(PageRun extent, PageRun part, std::uint64_t of_pages) {
  moving_.wait_for_thaw(mutex_);
  earlier_.learn(part.first);
  if (extent.first + extent.count > table_.capacity_pages()) return;
  if (cut_.are_writes_forbidden() || has_owners_) return;
  if (room_.resident() < options_.pages_before_huge || room_.resident() + extent.count > room_.limit() / 2) return;
  const auto is_fresh = [&](PageRun run) {
    return table_.state(run.first) == PageState::kFresh &&
           table_.run_around(run.first, PageState::kFresh, run).count == run.count;
  };
  if (!table_.extent(extent.first).was_filled && is_fresh(extent)) return fill_expected(extent);
  if (of_pages <= kMostExpected && is_fresh(part)) fill_expected(part);
}

void Pager::fill_expected(PageRun run) {
  const std::uint32_t most = options_.block_max_pages;
  std::vector<PageRun> pieces;  // in which it leaves
  for (std::uint32_t at = 0; at < run.count; at += most) {
    pieces.push_back({run.first + at, std::min(most, run.count - at)});
  }
  std::vector<BlockId> blocks;
  for (const PageRun piece : pieces) {
    blocks.push_back(table_.new_block(piece.first, piece.count));
    begin_filling(piece, blocks.back());
  }
  changes_.note_changed(run);  // as in fill_fresh()
  mutex_.unlock();
  const std::uint32_t there = run.count == kExtentPages ? view_.put_in_huge(run.first) : 0;
  if (there < run.count) view_.put_in({run.first + there, run.count - there}, g_zeros, View::Guard::kOff);
  mutex_.lock();
  for (std::size_t i = 0; i < pieces.size(); ++i) finish_filling(pieces[i], blocks[i], false, false);
}

}  // namespace farheap::pager
