// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The way out: from view to probation, from probation to the store. Runs ahead of need, between a high and a low
// water mark, so that a fault finds room without waiting for a write. Several evictors may be at it, each with a round
// of its own: a block is of one of them, from the moment it is off its list. Which blocks leave first is exact for one
// of them only.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "pager/pager.hpp"

namespace farheap::pager {

namespace {
constexpr std::uint64_t kBatchPages = 512;     // written in one go; more would hold up who reads meanwhile
constexpr std::uint32_t kPagesUnderLock = 64;  // at most, before the mutex is let go for a moment
constexpr int kStuckWaitMs = 5;
constexpr unsigned kTakenInPassing = 4;     // more than one, for the times when the evictor is awake
constexpr std::uint32_t kSmallPiece = 16;   // pages; more are a sweep's
constexpr std::uint64_t kMostWatching = 4;  // a part of probation stays in it only to watch

// Whether the backing has just these bytes for the page, as far as that is seen at once. For pages of which no hash was
// kept: to read what rests, which is cold, takes longer than a hash of what just came. Requires: it is not being
// written.
bool rests_as(Backing& backing, PageNumber page, const std::byte* bytes) {
  const std::byte* const there = backing.at_rest({page, 1});
  return there != nullptr && std::memcmp(there, bytes, base::kPageBytes) == 0;
}

}  // namespace

void Pager::give_way(std::uint32_t& since_break, std::uint32_t pages) {
  since_break += pages;
  if (since_break < kPagesUnderLock && !door_.is_wanted()) return;
  since_break = 0;
  if (room_.waiting() != 0) freed_.notify_all();
  mutex_.unlock();
  door_.wait();
  lock_awake(mutex_);
}

void Pager::wait_for_eviction_work(int at_most_ms, unsigned evictor) {
  Lock lock(mutex_);
  if (evictor != 0) return evictors_.sleep(evictor, mutex_, std::chrono::milliseconds(at_most_ms));
  if (room_.is_stuck()) {  // not to be woken: only time helps
    lock.unlock();
    base::sleep_for(std::chrono::milliseconds(std::min(at_most_ms, kStuckWaitMs)));
    return;
  }
  if (room_.excess() != 0) return;
  if (!flush_list_.quiet().empty() && moving_.may_evict()) return;
  evictors_.sleep(evictor, mutex_, std::chrono::milliseconds(at_most_ms));
}

Pager::Evicted Pager::evict_once(unsigned evictor) {
  const bool is_first = evictor == 0;
  door_.share(leaving_view_);
  base::SharedLock leaving_view(leaving_view_, std::adopt_lock);
  lock_awake(mutex_);
  Lock lock(mutex_, std::adopt_lock);
  room_.refresh();
  if (!moving_.may_evict()) return Evicted::kIdle;
  if (is_first && !flush_list_.quiet().empty()) {
    lock.unlock();
    leaving_view.unlock();
    guard_quiet();
    return Evicted::kWorked;
  }
  const std::uint64_t excess = std::min(evictors_.share_of(room_.excess()), kBatchPages);
  if (excess == 0) {
    if (!is_first) return Evicted::kIdle;
    if (room_.sought() == 0) room_.note_round(true);
    if (room_.free() != 0) moving_.tell(), freed_.notify_all();
    leaving_view.unlock();
    if (options_.says_soon) offer_nothing();
    return Evicted::kIdle;
  }
  // Where the target has risen, or much was touched there since the last round, it is reached in steps: meanwhile
  // nothing leaves memory. (Larger steps find more that is in use, but a touch in probation costs a fifth of a miss.)
  room_.begin_search(excess);
  const std::uint64_t target = probation_target();
  const std::uint64_t wanted = std::min(target + room_.sought(), probation_.pages() + 2 * excess);
  evictors_.call_help();
  fill_probation(wanted);
  leaving_view.unlock();
  room_.end_search(excess);
  if (!moving_.may_evict()) return Evicted::kIdle;

  Leaving& leaving = rounds_[evictor];
  leaving.clear();
  choose_leaving(excess, leaving);
  if (leaving.blocks.empty()) return note_vain_round(is_first);
  room_.note_round(true);
  if (is_first) room_.lower_reserve();
  moving_.begin();
  mutex_.unlock();
  examine(leaving);
  const Status written = leaving.writes.empty() ? Status{} : write_patiently(leaving.writes);
  if (written && !leaving.offers.empty()) backing_.offer(leaving.offers);
  lock_awake(mutex_);
  room_.refresh();  // what was packed is beside the pages now
  settle(leaving, written.has_value());
  moving_.end();
  moving_.tell();
  freed_.notify_all();
  if (written) {
    if (!leaving.writes.empty() && store_is_full_.exchange(false)) {
      base::log(base::LogLevel::kError, "there is space again; the program goes on");
    }
    return Evicted::kWorked;
  }
  lock.unlock();
  if (written.error().code == ErrorCode::kNoSpace && options_.wait_when_full) {
    if (!store_is_full_.exchange(true)) {
      counters_.store_full_waits.fetch_add(1, std::memory_order_relaxed);
      base::log(base::LogLevel::kError, "{}; the program waits until there is space", written.error().message());
    }
    return Evicted::kStoreFull;
  }
  options_.lost(written.error());
  return Evicted::kStoreFull;
}

// The others may have pages under way, which will be free in a moment. Only the first evictor says that all is stuck.
Pager::Evicted Pager::note_vain_round(bool is_first) {
  if (!is_first) {
    evictors_.wake();
    return Evicted::kIdle;
  }
  if (room_.leaving() != 0) {
    moving_.wait_for(mutex_, std::chrono::milliseconds(1));
    return Evicted::kWorked;
  }
  room_.note_round(false);
  freed_.notify_all();
  return Evicted::kIdle;
}

// What the backing has near may be too much by now.
void Pager::offer_nothing() {
  moving_.begin();
  mutex_.unlock();
  backing_.offer({});
  lock_awake(mutex_);
  moving_.end();
}

// Where all is written to all the time, one of them has to go.
BlockId Pager::take_victim() {
  constexpr int kMostSpared = 256;
  policy_.keep_to_share(room_.limit());
  if (const BlockId id = policy_.take_done_with()) return id;
  if (ExpectedOrder* const order = read_ahead_.followed()) {
    constexpr std::uint32_t kPages = PageOrder::kBlockPages;
    if (const BlockId id = take_what_order_does_not_know(*order)) return with_neighbours(id);
    const BlockId id = order->take_victim();
    if (id != 0) return with_all_in({table_.block(id).first / kPages * kPages, kPages}, id);
  }
  policy_.take_back_from_order();
  BlockId id = policy_.take_victim(room_.limit());
  if (id != 0 && policy_.watches(id)) return id;
  for (int spared = 0; id != 0 && spared < kMostSpared && write_watch_.was_written(id, room_.limit()); ++spared) {
    policy_.proven(id);
    id = policy_.take_victim(room_.limit());
  }
  return id != 0 ? with_neighbours(id) : 0;
}

// What is in no order stays, as long as it is little: it may be used all the time. So does what is kept. Of what is
// more than that the pager's own policy chooses, as often as it has a share of memory.
BlockId Pager::take_what_order_does_not_know(const ExpectedOrder& order) {
  constexpr int kMostKnown = 64;
  constexpr std::uint64_t kLittle = 4;
  const std::uint64_t resident = room_.resident(),
                      known = std::min(order.pages_in_view() + policy_.kept_pages(), resident);
  owed_by_unknown_ += resident - known - std::min(resident - known, resident / kLittle);
  if (resident == 0 || owed_by_unknown_ < resident) return 0;
  owed_by_unknown_ = 0;
  for (int passed = 0; passed < kMostKnown; ++passed) {
    const BlockId id = policy_.take_usual_victim(room_.limit());
    if (id == 0 || !order.knows(table_.block(id).first)) return id;
    policy_.leave_to_order(id);
  }
  return 0;
}

// Where it is known what is needed last there is nothing to ask.
std::uint64_t Pager::probation_target() {
  if (ExpectedOrder* const order = read_ahead_.followed()) return order->most_markers();
  return probation_.target(room_.limit(), policy_.foreseen_percent());
}

// Joins the victim with small blocks beside it that are used with it. One system call takes them all out of view, and
// one fault brings them back.
BlockId Pager::with_neighbours(BlockId id) {
  const Block& victim = table_.block(id);
  const std::uint32_t together = around_.together(table_.extent(victim.first));
  const PageRun window = fetch_window(victim.first / together * together, together, false);
  return victim.count >= together || victim.leave_first ? id : with_all_in(window, id);
}

// Joins the victim with all blocks inside of the window, unless it reaches beyond that.
BlockId Pager::with_all_in(PageRun window, BlockId id) {
  const auto is_inside = [&](const Block& block) {
    return block.first >= window.first && block.first + block.count <= window.first + window.count;
  };
  if (!is_inside(table_.block(id)) || table_.block(id).count == window.count) return id;
  BlockId whole = 0;
  for (PageNumber page = window.first; page < window.first + window.count; ++page) {
    if (table_.state(page) != PageState::kPresent) continue;
    const BlockId one = table_.tag(page);
    if (one == whole) continue;
    if (one != id && (table_.block(one).busy || !policy_.may_take(one) || !is_inside(table_.block(one)))) continue;
    if (whole == 0) {
      whole = table_.new_block(window.first, window.count);
      table_.block(whole).pages = 0;
    }
    join(one, whole);
  }
  return whole;
}

// Requires: `one` lies inside of `whole`, which is on no list.
void Pager::join(BlockId one, BlockId whole) {
  Block& from = table_.block(one);
  Block& into = table_.block(whole);
  policy_.remove(one);
  into.proofs = std::max(into.proofs, from.proofs);
  into.pages += from.pages;
  // A block may still know hashes of pages that it has lost: only those of its present pages are taken over.
  table_.for_each_run(from.first, from.first + from.count, PageState::kPresent, one, [&](PageRun run) {
    into.known.join(into.count, from.known, static_cast<std::uint32_t>(run.first - from.first), run.count,
                    static_cast<std::uint32_t>(run.first - into.first));
    for (std::uint32_t i = 0; i < run.count; ++i) table_.tag(run.first + i) = whole;
  });
  table_.free_block(one);
}

void Pager::fill_probation(std::uint64_t wanted_pages) {
  std::uint32_t since_break = 0;
  std::uint64_t tried = 0;
  const std::uint64_t all = policy_.pages();  // when each was tried once, the rest is refused by the kernel
  while (probation_.pages() < wanted_pages && tried < all) {
    const BlockId id = take_victim();
    if (id == 0) break;
    const std::uint32_t pages = table_.block(id).pages;
    tried += pages;
    since_break += pages;
    take_out(id);
    if (since_break >= kPagesUnderLock || door_.is_wanted()) {
      since_break = 0;
      mutex_.unlock();
      leaving_view_.unlock_shared();
      door_.wait();
      door_.share(leaving_view_);
      lock_awake(mutex_);
      if (!moving_.may_evict()) break;
    }
  }
}

// Without the mutex while the kernel works: with the program busy on another processor, each page by itself is an
// interrupt there.
void Pager::take_out(BlockId id) {
  Block& block = table_.block(id);
  const PageNumber first = block.first, end = first + block.count;
  std::array<PageRun, kExtentPages / 2> runs;  // the least gap is a page
  std::size_t count = 0;
  table_.for_each_run(first, end, PageState::kPresent, id, [&](PageRun run) {
    for (std::uint32_t i = 0; i < run.count; ++i) table_.set_state(run.first + i, PageState::kTakingOut);
    runs[count++] = run;
  });
  moving_.begin();
  mutex_.unlock();
  View::Taken answers[kExtentPages];
  for (const PageRun& run : std::span(runs.data(), count)) {
    view_.take_out(run, {answers + (run.first - first), run.count});
    forget_gone(run, answers + (run.first - first));
  }
  lock_awake(mutex_);
  for (const PageRun& run : std::span(runs.data(), count)) note_taken(id, run, answers + (run.first - first));
  if (block.wanted) view_.wake({first, block.count});
  block.wanted = false;
  moving_.end();
  if (block.pages != 0) {
    block.leave_first ? probation_.push_oldest(id) : probation_.push_newest(id);
  } else {
    table_.free_block(id);
  }
}

// Blocks out for a page in, by the thread that brings it, while the evictors sleep: then no other processor has to be
// told. Each page by itself is an interrupt on each processor that runs this process, which is waited for (13 of the
// 20 us that a page's way out took the evictor, under random look-ups).
void Pager::take_out_in_passing() {
  if (!evictors_.sleeps()) return;
  if (!door_.try_share(leaving_view_)) return;
  const base::SharedLock turn(leaving_view_, std::adopt_lock);
  door_.lock(mutex_);
  Lock lock(mutex_, std::adopt_lock);
  const std::uint64_t reserve = room_.reserve();
  const auto wanted = [&]() FARHEAP_REQUIRES(mutex_) {
    return evictors_.sleeps() && moving_.may_evict() && room_.lacks(2 * reserve) &&
           probation_.pages() < probation_target() + 3 * reserve;
  };
  for (unsigned i = 0; i < kTakenInPassing && wanted(); ++i) {
    const BlockId id = take_victim();
    if (id == 0) return;
    take_out(id);
  }
}

// What the program has dropped behind our back reads as zeros. Nobody touches it as long as it is on its way out.
void Pager::forget_gone(PageRun run, const View::Taken* answers) {
  for (std::uint32_t i = 0; i < run.count; ++i) {
    if (answers[i] == View::Taken::kGone) backing_.forget({run.first + i, 1});
  }
}

void Pager::note_taken(BlockId id, PageRun run, const View::Taken* answers) {
  Block& block = table_.block(id);
  for (std::uint32_t i = 0; i < run.count; ++i) {
    const PageNumber page = run.first + i;
    switch (answers[i]) {
      case View::Taken::kTaken: table_.set_state(page, PageState::kProbation); break;
      case View::Taken::kGone:
        table_.set_state(page, PageState::kFresh);
        table_.tag(page) = 0;
        changes_.note_discarded({page, 1});
        --block.pages;
        room_.went(1);
        break;
      case View::Taken::kRefused: {
        // What the kernel holds on to becomes a block of its own, tried again only when it is old again.
        table_.set_state(page, PageState::kPresent);
        const BlockId single = table_.new_block(page, 1);
        table_.tag(page) = single;
        --block.pages;
        policy_.refused(single);
        break;
      }
    }
  }
}

// In one piece: a flush knows what is on probation, and what is on its way.
void Pager::choose_leaving(std::uint64_t pages, Leaving& leaving) {
  std::vector<BlockId> staying;
  // More that only watch could fill all of probation, and nothing would leave.
  const std::uint64_t most_watching = probation_.pages() / kMostWatching;
  std::uint64_t watching = 0;
  while (leaving.expected < pages && probation_.oldest() != 0) {
    const BlockId id = probation_.oldest();
    probation_.remove(id);
    Block& block = table_.block(id);
    ExpectedOrder* const order = read_ahead_.followed();
    const bool watches = order == nullptr && watching < most_watching && policy_.watches(id);
    if (!cut_.may_leave(block, id) || watches || (order != nullptr && order->holds(block))) {
      watching += watches ? 1 : 0;
      staying.push_back(id);
      continue;
    }
    block.busy = true;
    table_.for_each_run(block.first, block.first + block.count, PageState::kProbation, id, [&](PageRun run) {
      for (std::uint32_t i = 0; i < run.count; ++i) table_.set_state(run.first + i, PageState::kWriting);
    });
    leaving.expected += block.pages;
    leaving.blocks.push_back(id);
  }
  for (const BlockId id : staying) probation_.push_newest(id);
  room_.will_leave(leaving.expected);
}

// Sweeps bring large pieces, and come by again for such; what is done with does not come back.
bool Pager::may_return(const Block& block) const {
  const Extent* extent = table_.find(block.first);
  return options_.says_soon && !block.leave_first && block.count <= kSmallPiece && extent->hint != HintKind::kStream &&
         extent->hint != HintKind::kDoneWith;
}

// Outside the mutex: the pages are kWriting, so their staging places do not change (a page touched meanwhile is
// copied back, not moved).
void Pager::examine(Leaving& leaving) {
  {
    lock_awake(mutex_);
    Lock lock(mutex_, std::adopt_lock);
    std::uint32_t since_break = 0;
    // Of busy blocks, that only discard() takes pages from, and it waits. What is in view again was touched meanwhile.
    for (const BlockId id : leaving.blocks) {
      give_way(since_break, table_.block(id).count);
      const Block& block = table_.block(id);
      const bool soon = may_return(block);
      for (PageNumber page = block.first; page < block.first + block.count; ++page) {
        const PageState state = table_.state(page);
        const bool came_along = state == PageState::kWriting || state == PageState::kPresent;
        if (!came_along || table_.tag(page) != id) continue;
        const auto found = changes_.is_changed(page) ? Leaving::Page::kDirty : Leaving::Page::kClean;
        leaving.pages.push_back({page, id, static_cast<std::uint32_t>(page - block.first), {}, found, soon});
      }
    }
  }
  std::sort(leaving.pages.begin(), leaving.pages.end(), [](auto& a, auto& b) { return a.page < b.page; });
  for (Leaving::Page& one : leaving.pages) {
    const std::byte* bytes = view_.staging(one.page);
    const auto is_clean = [&] {
      one.found = Leaving::Page::kClean;
      if (one.soon) add_page(leaving.offers, one.page, bytes, options_.block_max_pages, true);
    };
    if (one.found == Leaving::Page::kClean) {
      is_clean();
      continue;
    }
    const Block& block = table_.block(one.block);
    if (is_zero_page(bytes)) {
      one.found = Leaving::Page::kZero;
      continue;
    }
    const bool has_hash = block.known.kind() == KnownContents::Kind::kHashes;
    if (has_hash) one.hash = hash_page(bytes);
    if (has_hash ? block.known.is_stored(one.index, one.hash) : rests_as(backing_, one.page, bytes)) {
      is_clean();
      continue;
    }
    ++leaving.dirty_pages;
    add_page(leaving.writes, one.page, bytes, options_.block_max_pages, one.soon);
  }
}

void Pager::settle(Leaving& leaving, bool written) {
  sort_out(leaving, written);
  mutex_.unlock();
  forget_zeros(leaving);
  for (const auto& part : leaving.parts) leaving.runs.push_back(part.run);
  view_.drop_staging(leaving.runs);
  lock_awake(mutex_);
  let_go(leaving);
  room_.stays(leaving.expected);
  for (const BlockId id : leaving.blocks) {
    Block& block = table_.block(id);
    block.busy = block.wanted = false;
    if (block.queue != Queue::kNone) {  // rescued
      if (block.leave_first) policy_.leaves_next(id);
      continue;
    }
    if (block.pages == 0) {
      // Now, because what a full store refuses stays, and is chosen again and again.
      if (block.marker) read_ahead_.marker_went(false);
      policy_.gone(block);
      table_.free_block(id);
    } else {
      probation_.push_oldest(id);
    }
  }
  if (!written) return;
  for (const auto& [run, from, soon] : leaving.writes) {
    if (soon) continue;  // the backing counts what it does with it
    counters_.bytes_written.fetch_add(run.count * base::kPageBytes, std::memory_order_relaxed);
    heat(run.first, base::Heat::kBytesWritten, run.count * base::kPageBytes);
  }
}

// What stays goes back to probation; the rest makes leaving.parts. In one piece: who is rescued is so as a whole.
void Pager::sort_out(Leaving& leaving, bool written) {
  for (std::size_t i = 0; i < leaving.pages.size();) {
    const auto& first = leaving.pages[i];
    const bool back = table_.state(first.page) == PageState::kPresent;
    const bool stays = !written && first.found == Leaving::Page::kDirty && !back;
    PageRun run{first.page, 0};
    for (; i < leaving.pages.size(); ++i, ++run.count) {
      const auto& one = leaving.pages[i];
      if (one.page != run.first + run.count || one.block != first.block) break;
      if ((table_.state(one.page) == PageState::kPresent) != back) break;
      if ((!written && one.found == Leaving::Page::kDirty && !back) != stays) break;
    }
    const std::size_t from = i - run.count;
    Block& block = table_.block(first.block);
    if (stays) {
      // A failed write may have left anything in the store: what was known of it holds no longer.
      block.known.forget();
      for (std::uint32_t k = 0; k < run.count; ++k) table_.set_state(run.first + k, PageState::kProbation);
      continue;
    }
    leaving.parts.push_back({run, from, back});
    if (!back) {
      for (std::size_t k = from; k < i; ++k) {
        const auto& one = leaving.pages[k];
        table_.set_state(one.page, PageState::kDropping);
        if (changes_.tracked()) changes_.note_stored(one.page);
      }
      continue;
    }
    if (changes_.tracked()) continue;
    // Its copy in view goes on, and the store has what the staging place holds.
    if (block.known.kind() != KnownContents::Kind::kHashes) block.known.prepare_hashes(block.count);
    for (std::uint32_t k = 0; k < run.count; ++k) {
      const auto at = static_cast<std::uint32_t>(run.first + k - block.first);
      const bool stored = written && leaving.pages[from + k].found != Leaving::Page::kZero;
      block.known.set_hash(at, stored ? hash_page(view_.staging(run.first + k)) : PageHash{});
    }
  }
}

// Outside the mutex: the pages are kDropping, so nobody brings them back, and none is written before it is forgotten.
void Pager::forget_zeros(const Leaving& leaving) {
  PageRun run{0, 0};
  const auto forget = [&] {
    if (run.count != 0) backing_.forget(run);
  };
  for (const auto& part : leaving.parts) {
    for (std::size_t i = part.from; !part.back && i < part.from + part.run.count; ++i) {
      const auto& one = leaving.pages[i];
      if (one.found != Leaving::Page::kZero) continue;
      if (one.page != run.first + run.count) {
        forget();
        run = {one.page, 0};
      }
      ++run.count;
    }
  }
  forget();
}

// The staging places are given back.
void Pager::let_go(Leaving& leaving) {
  std::uint64_t zero = 0;
  std::uint32_t since_break = 0;
  for (const auto& [run, from, back] : leaving.parts) {
    room_.has_left(run.count);
    leaving.expected -= run.count;
    if (back) continue;
    Block& block = table_.block(leaving.pages[from].block);
    if (block.guessed) around_.guessed(table_.extent(run.first), false, run.count);
    for (std::uint32_t k = 0; k < run.count; ++k) {
      const auto& one = leaving.pages[from + k];
      Extent& extent = table_.extent(one.page);
      if (one.found == Leaving::Page::kZero) {
        table_.set_state(one.page, PageState::kFresh);
        ++zero;
      } else {
        table_.set_state(one.page, PageState::kStored);
        if (block.known.kind() == KnownContents::Kind::kHashes) {
          const bool dirty = one.found == Leaving::Page::kDirty;
          if (dirty && extent.dirty_bias < 3) ++extent.dirty_bias;
          if (!dirty && extent.dirty_bias > 0) --extent.dirty_bias;
        }
      }
      table_.tag(one.page) = policy_.stamp();
    }
    if (block.wanted) view_.wake(run);
    block.pages -= run.count;
    give_way(since_break, run.count);
  }
  counters_.pages_dropped_clean.fetch_add(leaving.pages.size() - leaving.dirty_pages - zero, std::memory_order_relaxed);
}

}  // namespace farheap::pager
