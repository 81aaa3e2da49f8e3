// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the pager knows of every page, and of the groups of pages that move together.
//
// Page states, and who may change them (always under the pager's mutex):
//
//   state       in view  memory    store        leaves to
//   kFresh      no       -         -            kFilling (first touch)
//   kFilling    no       incoming  maybe        kPresent | kProbation (marker, neighbour) | back, when a read fails
//               no       -         asked        kFresh | kStored, as the backing says (invalidated, from every state of
//               rest)
//   kPresent    yes      view      maybe stale  kTakingOut (chosen to leave) | kFresh (discarded)
//   kTakingOut  maybe    either    maybe stale  kProbation | kPresent (refused) | kFresh (the program had dropped it)
//   kProbation  no       staging   maybe stale  kPresent (touched) | kWriting (its turn has come)
//   kWriting    no       staging   incoming     kDropping | kPresent (touched) | kProbation (failed)
//   kDropping   no       maybe     yes or zeros kStored | kFresh (all zeros)
//   kStored     no       -         yes          kFilling (touched, read ahead) | kFresh (discarded)
//               where pages have owners, zeros that were read need not be there: they read as such
//
// A page in kFilling, kTakingOut, kWriting or kDropping belongs to the thread that put it there; everybody else waits
// or goes round it. Who touches it in kTakingOut or kDropping marks its block as wanted, and is woken by that thread to
// try again.
//
// Thread-safety: none of its own; the pager's mutex guards all of it.
#pragma once

#include <atomic>
#include <bitset>
#include <cstdint>
#include <memory>

#include "base/units.hpp"
#include "os/mapping.hpp"
#include "pager/contents.hpp"
#include "pager/core_index.hpp"
#include "pager/flush_list.hpp"
#include "pager/hint.hpp"
#include "pager/page_ranges.hpp"
#include "pager/view.hpp"

namespace farheap::pager {

enum class PageState : std::uint8_t {
  kFresh = 0,
  kFilling,
  kPresent,
  kProbation,
  kWriting,
  kStored,
  kTakingOut,
  kDropping
};

// Out of view, and at rest: who wants it can fetch it at once. Fresh pages are not away; nothing has to be read.
[[nodiscard]] constexpr bool is_away(PageState state) {
  return state == PageState::kStored || state == PageState::kProbation || state == PageState::kWriting;
}

[[nodiscard]] constexpr bool is_in_memory(PageState state) {
  return state != PageState::kFresh && state != PageState::kStored;
}

inline constexpr std::uint32_t kExtentPages = base::kPagesPerHugePage;

using BlockId = std::uint32_t;  // 0: none
// Policies of one kind have small and stream lists, those of another warm and hot ones: see Policy.
enum class Queue : std::uint32_t { kNone, kMain, kKeep, kProbation, kPlanned, kSmallOrWarm, kStreamOrHot, kRefused };

// Neighbouring pages that came into memory together and leave it together: a block in memory. Its pages are those
// of [first, first + count) whose table entry names it; discarded ones have left it.
// Everything but `known` is read with the pager's mutex only: what is written in the first word shares it with `first`.
struct Block {
  std::uint64_t first : 34 = 0;  // a page number: segments have at most 2^34 pages (64 TiB)
  std::uint32_t count : 10 = 0;  // pages it was made with; all in one extent
  std::uint32_t pages : 10 = 0;  // pages it still has
  Queue queue : 3 = Queue::kNone;
  bool busy : 1 = false;         // its staging is being read by the writer: it may not be taken out again yet
  bool marker : 1 = false;       // first page of a read-ahead window, held out of view so that touching it is noticed
  bool leave_first : 1 = false;  // the program is done with it
  bool guessed : 1 = false;      // fetched as neighbours of a missed page, and not touched yet
  bool wanted : 1 = false;       // touched while it was taken out of view, or dropped
  std::uint32_t proofs : 2 = 0;  // how often it was touched in probation: see Policy
  BlockId older = 0, newer = 0;  // in its queue
  KnownContents known;           // as the store (or a fresh page) has it
};
static_assert(sizeof(Block) == 32);  // under random access there is one for each page in memory
static_assert(kExtentPages < 1 << 10);

// The writes to an extent's pages in view, as far as they are known (see WriteWatch).
struct WriteBits {
  std::bitset<kExtentPages> watched;  // in view since the kernel was asked
  std::bitset<kExtentPages> written;  // while watched
  std::uint32_t asked_at = 0;         // 0: never
  void came(std::uint32_t page) { watched[page] = written[page] = false; }
};

// 2 MiB of pages. Exists from the first touch on.
struct Extent {
  PageState state[kExtentPages] = {};
  // In memory: the page's block. Not in memory: when it left, for the ghost queue (see Policy).
  std::uint32_t tag[kExtentPages] = {};
  WriteBits writes;
  std::uint32_t seen = 0;             // when a sweep was last seen here (see Policy); 0: never
  std::uint32_t period = 0;           // how long after the time before; 0: not known
  std::uint32_t watched_since = 0;    // when a page of it was last taken out of view to watch for the next use
  std::uint16_t present = 0;          // pages that are kPresent
  std::uint16_t stored = 0;           // ... kStored
  bool was_filled = false;            // pages of it have been in view
  bool is_over = false;               // the sweep that was seen here is a loop's, which is further on by now
  std::uint16_t watched = 0;          // the page that watches, counted from 1 in the extent; 0: none, or it was touched
  bool listed = false;                // the policy looks at it
  std::uint8_t swept_order = 0;       // sweeps went through here: 1 << swept_order pages are fetched at once
  std::uint8_t neighbours_right = 0;  // see Neighbours; 0: nothing is known
  std::uint8_t unasked = 0;           // touches since it was asked whether neighbours are used: see Neighbours
  std::uint8_t dirty_bias = 0;        // 0..3; from 2 on its pages are taken as written without asking
  std::uint8_t sample = 0;            // ... except for one fetch in sixteen
  HintKind hint = HintKind::kNone;    // the last that stays with it: stream, keep, done with
};

class PageTable {
 public:
  // Requires: capacity_pages < 2^34 - kExtentPages.
  [[nodiscard]] static Result<PageTable> make(std::uint64_t capacity_pages);
  PageTable(PageTable&& other) noexcept = default;
  PageTable& operator=(PageTable&&) = delete;
  ~PageTable();

  [[nodiscard]] std::uint64_t capacity_pages() const { return capacity_pages_; }
  // Nothing was ever touched from here on.
  [[nodiscard]] PageNumber pages_end() const { return extents_end_ * kExtentPages; }
  // nullptr where nothing was ever touched.
  [[nodiscard]] Extent* find(PageNumber page) const { return extents_[page / kExtentPages].get(); }
  [[nodiscard]] Extent& extent(PageNumber page);
  // Extents of pages [first, end) that are made later are to be streamed, or no longer.
  void stream_from_the_first_touch(PageNumber first, PageNumber end) { streamed_.add(first, end); }
  void stream_no_more(PageNumber first, PageNumber end) { streamed_.remove(first, end); }

  [[nodiscard]] PageState state(PageNumber page) const {
    const Extent* extent = find(page);
    return extent == nullptr ? PageState::kFresh : extent->state[page % kExtentPages];
  }
  void set_state(PageNumber page, PageState state) {
    Extent& extent = this->extent(page);
    PageState& now = extent.state[page % kExtentPages];
    extent.present += static_cast<std::uint16_t>((state == PageState::kPresent) - (now == PageState::kPresent));
    const int stored = (state == PageState::kStored) - (now == PageState::kStored);
    extent.stored += static_cast<std::uint16_t>(stored);
    stored_pages_ += stored;
    now = state;
    if (state == PageState::kPresent) extent.writes.came(page % kExtentPages);
    if (core_pages_ != nullptr) {
      core_pages_[page].state.store(static_cast<std::uint8_t>(state), std::memory_order_relaxed);
    }
    if (away_ != nullptr) away_[page].store(is_away(state), std::memory_order_relaxed);
    if (flush_list_ != nullptr) flush_list_->note_moved(page, is_in_memory(state));
  }
  // Pages that are in the store and not in memory.
  [[nodiscard]] std::uint64_t stored_pages() const { return stored_pages_; }
  // From now on states are written down there, too, for cores. Requires: all pages are fresh.
  void note_for_cores(CorePage* pages) { core_pages_ = pages; }
  // From now on it is written down there, for each page, whether it is away: one byte, 1 or 0. All of them are 0
  // before.
  void note_away(std::atomic<std::uint8_t>* away);
  // From now on pages are listed there when they move; those that are in memory now are.
  void list_for_flushes(FlushList& list);
  [[nodiscard]] std::uint32_t& tag(PageNumber page) { return extent(page).tag[page % kExtentPages]; }

  [[nodiscard]] Block& block(BlockId id) const { return blocks_[id]; }
  [[nodiscard]] BlockId new_block(PageNumber first, std::uint32_t count);
  void free_block(BlockId id);

  // The longest run of pages in `state` that holds `page` (which must be in it) and stays inside `within`.
  [[nodiscard]] PageRun run_around(PageNumber page, PageState state, PageRun within) const;
  // The first run of pages in `state`, belonging to `owner` unless that is 0, at or after `from` and before `end`;
  // count 0 when there is none. Runs never cross an extent.
  [[nodiscard]] PageRun next_run(PageNumber from, PageNumber end, PageState state, BlockId owner = 0) const;
  // Every such run, in their order. `visit` may change the states of the run it is given, and let go of the pager's
  // mutex: the next run is looked for when it has returned.
  template <class Visit>
  void for_each_run(PageNumber from, PageNumber end, PageState state, BlockId owner, Visit visit) const {
    for (PageRun run = next_run(from, end, state, owner); run.count != 0; run = next_run(from, end, state, owner)) {
      from = run.first + run.count;
      visit(run);
    }
  }

 private:
  PageTable() = default;
  std::uint64_t capacity_pages_ = 0;
  std::uint64_t extents_end_ = 0;  // none was made at or after this one
  os::ReservedArray<std::unique_ptr<Extent>> extents_;
  os::ReservedArray<Block> blocks_;
  PageRanges streamed_;
  std::uint64_t stored_pages_ = 0;
  BlockId blocks_made_ = 0;
  BlockId free_blocks_ = 0;  // linked by Block::newer
  CorePage* core_pages_ = nullptr;
  std::atomic<std::uint8_t>* away_ = nullptr;
  FlushList* flush_list_ = nullptr;
};

}  // namespace farheap::pager
