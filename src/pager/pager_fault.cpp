// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The way in: from a fault to a page in view.
#include <algorithm>
#include <chrono>
#include <thread>

#include "pager/pager.hpp"

namespace farheap::pager {

namespace {

PageRun cut(PageRun run, PageRun within) {
  const PageNumber first = std::max(run.first, within.first);
  const PageNumber end = std::min(run.first + run.count, within.first + within.count);
  return {first, static_cast<std::uint32_t>(end - first)};
}

void count(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) {
  counter.fetch_add(by, std::memory_order_relaxed);
}

}  // namespace

std::uint32_t Pager::fault(PageNumber page, bool write, std::byte* buffer) {
  count(counters_.faults);
  door_.lock(mutex_);
  Lock lock(mutex_, std::adopt_lock);
  moving_.wait_for_thaw(mutex_);
  earlier_.learn(page);
  switch (table_.state(page)) {
    case PageState::kPresent:
      // It came while the fault was on its way to us; or the program dropped it behind our back, and it reads as zeros.
      mend(page);
      return 0;
    case PageState::kFilling: caught_up_with_read_ahead(page); return 0;
    case PageState::kProbation:
    case PageState::kWriting: touched_in_probation(page); return 0;
    case PageState::kTakingOut:
    case PageState::kDropping: touched_on_its_way_out(page); return 0;
    case PageState::kFresh: fill_fresh(page); return 0;
    case PageState::kStored: break;
  }
  Started started;
  if (!begin_stored(page, write, started)) return 0;
  lock.unlock();
  return finish_fault(started, nullptr, buffer);
}

void Pager::mend(PageNumber page) {
  if (flush_list_.is_on()) flush_list_.note_moved(page, true);
  view_.mend(page);
}

Pager::Begun Pager::begin_fault(PageNumber page, bool write, Started& started) {
  door_.lock(mutex_);
  Lock lock(mutex_, std::adopt_lock);
  earlier_.learn(page);
  const PageState state = table_.state(page);
  if (moving_.is_frozen() || state == PageState::kFresh) return Begun::kNotNow;
  if (state == PageState::kStored && room_.free() == 0) return Begun::kNotNow;
  count(counters_.faults);
  switch (state) {
    case PageState::kPresent: mend(page); return Begun::kDone;
    case PageState::kFilling: caught_up_with_read_ahead(page); return Begun::kDone;
    case PageState::kStored: return begin_stored(page, write, started) ? Begun::kReading : Begun::kDone;
    case PageState::kTakingOut:
    case PageState::kDropping: touched_on_its_way_out(page); return Begun::kDone;
    default: touched_in_probation(page); return Begun::kDone;
  }
}

void Pager::note_stall(PageNumber page, Clock::time_point since) {
  const auto took = static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now() - since).count());
  count(counters_.stall_ns, took);
  heat(page, base::Heat::kStallNs, took);
}

void Pager::note_away(std::atomic<std::uint8_t>* away) {
  const Still still(door_, leaving_view_);
  Lock lock(mutex_);
  table_.note_away(away);
}

// Without Still: the stack is elsewhere, and what else is touched here the program never gets.
void Pager::fetch(PageNumber page, bool write, std::byte* buffer) {
  const Clock::time_point since = Clock::now();
  take_out_in_passing();
  Started started;
  bool begun = false;
  {
    door_.lock(mutex_);
    Lock lock(mutex_, std::adopt_lock);
    const PageState state = table_.state(page);
    if (moving_.is_frozen() || !is_away(state)) return;  // it came meanwhile, or is about to
    count(counters_.faults);
    count(counters_.guard_fetches);
    if (state != PageState::kStored) {
      touched_in_probation(page);
    } else {
      begun = begin_stored(page, write, started);
    }
  }
  // What rests in memory is copied from there. Not by the thread that serves faults, nor ahead: with two processors
  // plain programs' random look-ups took 1.14 times as long (docs/benchmarks/translate.md).
  if (!begun) return note_stall(page, since);
  const Incoming::Reads reads(started.incoming, buffer);
  finish_fault(started, reads.all().size() == 1 ? backing_.at_rest(reads.all()[0].run) : nullptr, buffer);
  note_stall(page, since);
}

// Whoever fills it wakes who waits. If a stream has caught up with its read-ahead, ask for more.
void Pager::caught_up_with_read_ahead(PageNumber page) {
  count(counters_.faults_waited);
  heat(page, base::Heat::kWaited);
  const auto advice = read_ahead_.notice(page);
  if (advice.sequential) read_ahead_.plan(page + 1, advice.pages, advice.backward);
}

// Its turn comes in a moment: then the touch is tried again.
void Pager::touched_on_its_way_out(PageNumber page) {
  count(counters_.faults_waited);
  heat(page, base::Heat::kWaited);
  table_.block(table_.tag(page)).wanted = true;
}

void Pager::touched_in_probation(PageNumber page) {
  count(counters_.faults_probation);
  heat(page, base::Heat::kProbation);
  const BlockId id = table_.tag(page);
  const bool marker = table_.block(id).marker;
  if (marker) read_ahead_.marker_went(true);
  const bool guessed = table_.block(id).guessed;
  const bool watched = policy_.watches(id);
  const auto advice = read_ahead_.notice(page);
  const Policy::Proof proof = watched             ? Policy::Proof::kWatched
                              : advice.sequential ? Policy::Proof::kSweep
                                                  : Policy::Proof::kItself;
  if (!marker && !guessed && !watched && !advice.sequential) {
    probation_.touched(true, room_.leaving(), table_.stored_pages());
  }
  if (table_.state(page) == PageState::kWriting) {
    if (guessed) around_.guessed(table_.extent(page), true, 1);
    rescue(id, proof);
  } else {
    // Only what the access pattern asks for: the rest of a block that came in, or was made, as one piece may be cold.
    const Around::Window around = guessed ? Around::Window{} : around_.touched(table_.extent(page));
    const std::uint32_t pages = std::max(advice.pages, around.sure);
    PageRun window = fetch_window(page, pages, advice.backward);
    if (!advice.sequential || advice.around) window = fetch_window(page / pages * pages, pages, false);
    const BlockId part = split_off(id, page, window);
    if (guessed) around_.guessed(table_.extent(page), true, table_.block(part).pages);
    if (!advice.sequential && !marker && part != id && around.pages > pages) {
      ask(id, fetch_window(page / around.pages * around.pages, around.pages, false));
    }
    rescue(part, proof);
  }
  if (marker && advice.sequential) read_ahead_.plan(page + 1, advice.pages, advice.backward);
}

// The pages of the block, in probation, that are inside the window around `page`: as a block of their own, unless they
// are all of it.
BlockId Pager::split_off(BlockId id, PageNumber page, PageRun window) {
  Block& block = table_.block(id);
  const PageNumber first = std::max<PageNumber>(window.first, block.first);
  const PageNumber end = std::min<PageNumber>(window.first + window.count, block.first + block.count);
  PageRun run{page, 1};
  const auto mine = [&](PageNumber one) { return table_.state(one) == PageState::kProbation && table_.tag(one) == id; };
  while (run.first > first && mine(run.first - 1)) --run.first, ++run.count;
  while (run.first + run.count < end && mine(run.first + run.count)) ++run.count;
  if (run.count == block.pages) return id;
  const BlockId part = table_.new_block(run.first, run.count);
  table_.block(part).proofs = block.proofs;
  table_.block(part).known = block.known.part(static_cast<std::uint32_t>(run.first - block.first), run.count);
  for (std::uint32_t i = 0; i < run.count; ++i) table_.tag(run.first + i) = part;
  block.pages -= run.count;
  // A block whose write has just failed is not back in its list yet.
  if (block.queue == Queue::kProbation) probation_.shrink(run.count);
  return part;
}

// Turns the block's pages in the window into guesses. A touch then tells that they should have come along.
void Pager::ask(BlockId id, PageRun window) {
  if (table_.block(id).queue != Queue::kProbation) return;
  table_.for_each_run(window.first, window.first + window.count, PageState::kProbation, id, [&](PageRun run) {
    mutex_.assume_held();
    const BlockId part = split_off(id, run.first, run);
    if (part == id) probation_.remove(id);
    table_.block(part).guessed = true;
    probation_.push_newest(part);
  });
}

// Back into view and onto the list of proven ones.
void Pager::rescue(BlockId id, Policy::Proof how) {
  Block& block = table_.block(id);
  const PageNumber end = block.first + block.count;
  if (block.queue == Queue::kProbation) probation_.remove(id);
  table_.for_each_run(block.first, end, PageState::kProbation, id, [&](PageRun run) {
    mutex_.assume_held();
    changes_.by_guard(run, [&](PageRun part, View::Guard guard) {
      if (guard == View::Guard::kOff) return view_.put_back(part);
      view_.copy_back(part, guard);
      view_.drop_staging({&part, 1});
    });
    for (std::uint32_t i = 0; i < run.count; ++i) table_.set_state(run.first + i, PageState::kPresent);
  });
  table_.for_each_run(block.first, end, PageState::kWriting, id, [&](PageRun run) {
    mutex_.assume_held();
    // The writer still reads the staging place: for a while there are two copies.
    changes_.by_guard(run, [&](PageRun part, View::Guard guard) { view_.copy_back(part, guard); });
    room_.came(run.count);
    for (std::uint32_t i = 0; i < run.count; ++i) table_.set_state(run.first + i, PageState::kPresent);
  });
  block.marker = block.leave_first = block.guessed = false;
  policy_.proven(id, how);
  keep_if_said(id);
  read_ahead_.came({block.first, block.count}, false);
  moving_.tell();
  if (room_.lacks_reserve()) evictors_.wake();
}

std::uint32_t Pager::wait_for_room(std::uint32_t wanted) {
  if (room_.free() == 0) {
    const auto since = Clock::now();
    room_.begin_wait();
    while (room_.free() == 0) {
      evictors_.wake();
      freed_.wait_for(mutex_, std::chrono::milliseconds(20));
      // Nothing can leave (all pinned or locked by the program): better over the budget than stuck. Pages that
      // are being written, or wait for a full store, are not a reason.
      if (moving_.is_eviction_paused()) break;  // a thread that forks may need this page to go on
      if (room_.is_hopeless() && !cut_.is_under_way()) break;
    }
    room_.end_wait();
    const auto waited = Clock::now() - since;
    count(counters_.stall_no_room_ns, std::chrono::duration_cast<std::chrono::nanoseconds>(waited).count());
  }
  if (room_.lacks_reserve()) evictors_.wake();
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(room_.free(), 1, wanted));
}

PageRun Pager::fetch_window(PageNumber page, std::uint32_t pages, bool backward) const {
  // Inside one extent: ahead of the page for a stream, the aligned block around it otherwise.
  const PageNumber extent = page / kExtentPages * kExtentPages;
  PageNumber first = page;
  PageNumber end = page + pages;
  if (backward) {
    end = page + 1;
    first = page + 1 >= pages ? page + 1 - pages : 0;
  }
  first = std::max(first, extent);
  end = std::min<PageNumber>({end, extent + kExtentPages, table_.capacity_pages()});
  return {first, static_cast<std::uint32_t>(end - first)};
}

// The part of the run around the page that lies in memory, so that the store is not read.
PageRun Pager::near_part(PageNumber page, PageRun run) const {
  const auto is_near = [&](PageNumber one) { return backing_.where({one, 1}).in_memory != 0; };
  PageNumber first = page, end = page + 1;
  while (first > run.first && is_near(first - 1)) --first;
  while (end < run.first + run.count && is_near(end)) ++end;
  return {first, static_cast<std::uint32_t>(end - first)};
}

// Hashing what will be written anyway is wasted: extents whose pages came back dirty are not hashed, but for a sample.
bool Pager::keep_hashes(Extent& extent, bool write) {
  if (write || changes_.tracked()) return false;
  return extent.dirty_bias < 2 || (++extent.sample & 15) == 0;
}

bool Pager::begin_stored(PageNumber page, bool write, Started& started) {
  const bool near = backing_.where({page, 1}).in_memory != 0;
  count(near ? counters_.faults_probation : counters_.faults_store);
  if (near) count(counters_.faults_packed);
  heat(page, near ? base::Heat::kProbation : base::Heat::kStore);
  const auto advice = read_ahead_.notice(page);
  if (!advice.sequential && !near) {
    probation_.touched(false, room_.leaving(), table_.stored_pages());
  }
  const Around::Window around = around_.missed(table_.extent(page), advice, near);
  const std::uint32_t granted =
      wait_for_room(std::min<std::uint64_t>(around.pages, std::max<std::uint64_t>(room_.limit() / 16, 1)));
  if (moving_.is_frozen() || table_.state(page) != PageState::kStored) {
    view_.wake({page, 1});
    return false;
  }
  PageRun window = fetch_window(page, granted, advice.backward);
  const bool around_page = !advice.sequential || advice.around;
  if (!around_page) window = read_ahead_.before_the_loops_end(page, window, advice.backward);
  if (around_page && granted > 1) {  // its aligned neighbourhood
    const PageNumber first = page / granted * granted;
    window = fetch_window(first, granted, false);
    if (page >= window.first + window.count) window = {page, 1};
  }
  PageRun run = table_.run_around(page, PageState::kStored, window);
  if (near && !advice.sequential) run = window = near_part(page, run);
  // What was asked for comes into view, what was guessed on probation. Between guesses may lie what is there already.
  started.incoming = {};  // it may have been used for another fault
  Incoming& incoming = started.incoming;
  if (advice.sequential) {
    incoming.add(run, Incoming::As::kAskedFor);
  } else {
    const PageRun sure = table_.run_around(
        page, PageState::kStored, cut(fetch_window(page / around.sure * around.sure, around.sure, false), run));
    const PageRun guessed = window.count <= Neighbours::kMostPages ? window : run;
    table_.for_each_run(guessed.first, guessed.first + guessed.count, PageState::kStored, 0, [&](PageRun part) {
      if (part.first == run.first) {
        incoming.add_around(part, sure, Incoming::As::kAskedFor, Incoming::As::kGuess);
      } else {
        incoming.add(part, Incoming::As::kGuess);
      }
    });
  }
  bool stays = true;
  started.in_memory = 0;
  for (const Incoming::Part& part : incoming.parts()) {
    const Backing::Rest rest = backing_.where(part.run);
    started.in_memory += rest.in_memory;
    stays &= rest.stays;
  }
  read_ahead_.reads(page, started.pages_read());
  begin_incoming(incoming);
  started.ghost = policy_.is_ghost(table_.tag(page), room_.limit());
  started.sequential = advice.sequential;
  started.page = page;
  if (advice.sequential) {
    read_ahead_.plan(advice.backward ? run.first : run.first + run.count, advice.pages, advice.backward);
  } else {
    read_ahead_.continues_at(run.first + run.count);
  }
  started.hash = stays && keep_hashes(table_.extent(page), write && incoming.pages() == 1);
  return true;
}

std::uint32_t Pager::finish_fault(const Started& started, const std::byte* arrived, std::byte* buffer) {
  const Incoming& incoming = started.incoming;
  const Status status = arrived != nullptr ? Status{} : read_patiently(Incoming::Reads(incoming, buffer).all());
  if (status) {
    // Without a hash the evictor compares what leaves with what rests, on another processor than the thread that
    // misses.
    const bool rests = arrived != nullptr && arrived != buffer;
    show(incoming, arrived != nullptr ? arrived : buffer, started.hash && !rests);
    const std::uint64_t read = started.pages_read() * base::kPageBytes;
    count(counters_.bytes_read, read);
    heat(started.page, base::Heat::kBytesRead, read);
  }
  door_.lock(mutex_);
  Lock lock(mutex_, std::adopt_lock);
  if (status) {
    finish_incoming(incoming, started.ghost, started.sequential);
    return incoming.pages();
  }
  undo_incoming(incoming);
  lock.unlock();
  options_.lost(status.error());
  return incoming.pages();
}

}  // namespace farheap::pager
