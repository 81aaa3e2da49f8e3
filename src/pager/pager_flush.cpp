// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the program has written is brought to the store, and stays in memory.
//
// Which pages differ from the store is told by their hashes, as when they leave. What is written is a copy, so that the
// program goes on meanwhile; the hash that is noted is the copy's, and what is written later differs from it.
//
// The invariants:
// - While a batch is under way nothing leaves the view, and so the evictor begins no round and nobody discards (Still);
//   what an earlier round still writes is waited for. So no page is written by two at a time, and no older copy comes
//   after a newer one.
// - A page in memory that is not listed is as the store has it: it is out of view, or was found to be so while it was,
//   and has been guarded since. Whatever brings a page to another place lists it (PageTable::set_state(), mend(),
//   pause_eviction()); who lets a write to it go on tells so first, and the next flush lists it.
#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <memory>

#include "pager/pager.hpp"

namespace farheap::pager {

namespace {
constexpr std::uint32_t kCopiesUnderLock = 64;
constexpr std::uint32_t kGuardedAtOnce = 64;
constexpr PageNumber kNoMore = UINT64_MAX;
}  // namespace

Status Pager::flush(std::byte* buffer) {
  assert(!options_.track_changes);
  backing_.begin_flush();
  const auto end = [](Backing* backing) { backing->end_flush(); };
  const std::unique_ptr<Backing, decltype(end)> flushing(&backing_, end);
  for (std::uint64_t from = 0; from != Backing::kFlushed;) {
    const Still still(door_, leaving_view_);
    if (Status flushed = flush_patiently(from); !flushed) return flushed;
  }
  for (PageNumber from = 0; from != kNoMore;) {
    const Still still(door_, leaving_view_);
    if (Status listed = from == 0 ? list_pages() : Status{}; !listed) return listed;
    from = choose_for_flush(from, buffer);
    if (flush_batch_.size() == 0) return {};
    if (Status flushed = write_batch(buffer); !flushed) return flushed;
  }
  return {};
}

Status Pager::list_pages() {
  {
    Lock lock(mutex_);
    if (flush_list_.is_on()) return {};  // it stays so
  }
  auto made = FlushList::make(options_.capacity_pages);
  if (!made) return fail(std::move(made.error()));
  if (view_.tells_every_write()) {
    if (Status begun = told_writes_.begin(options_.capacity_pages); !begun) return begun;
  }
  Lock lock(mutex_);
  flush_list_ = std::move(*made);
  table_.list_for_flushes(flush_list_);
  return {};
}

// Without the mutex. Where pages are guarded for flushes, nothing else guards them: what is being taken out is away,
// not guarded, and to release it does nothing.
bool Pager::let_write_for_flush(PageNumber page) {
  if (!told_writes_.tell(page)) return false;
  counters_.faults.fetch_add(1, std::memory_order_relaxed);
  view_.release({page, 1});
  return true;
}

// Pages that are listed, from this one on, as many as fit. Copies those that are out of view, which with the mutex stay
// where they are. Returns where to go on.
PageNumber Pager::choose_for_flush(PageNumber from, std::byte* buffer) {
  flush_batch_.clear();
  Lock lock(mutex_);
  told_writes_.take(table_.pages_end(), [&](PageNumber page) {
    mutex_.assume_held();
    if (is_in_memory(table_.state(page))) flush_list_.note_written(page);
  });
  std::uint32_t copies = 0;
  while (flush_batch_.size() < kFlushPages) {
    const PageNumber end = table_.pages_end();
    from = flush_list_.next(from, end);
    if (from >= end) return kNoMore;
    const PageState state = table_.state(from);
    // On its way. One that is coming in may have been written to already: who waited for it is woken before its state
    // says that it is there.
    const bool rests = state == PageState::kPresent || state == PageState::kProbation;
    if (!rests || table_.block(table_.tag(from)).busy) {
      moving_.wait(mutex_);
      continue;
    }
    const bool in_view = state == PageState::kPresent;
    if (!in_view) {
      std::memcpy(FlushBatch::place(buffer, flush_batch_.size()), view_.staging(from), base::kPageBytes);
      if (++copies % kCopiesUnderLock == 0) door_.let_through(mutex_);
    }
    flush_batch_.add(from++, in_view);
  }
  return from;
}

// Copies what is in view, and writes what differs from the store.
Status Pager::write_batch(std::byte* buffer) {
  if (Status copied = flush_batch_.copy_shown(view_, buffer); !copied) return copied;
  flush_batch_.look_at(buffer);
  {
    Lock lock(mutex_);
    flush_batch_.compare(table_);
  }
  for (const FlushBatch::Page& one : flush_batch_.pages()) {
    if (one.found == FlushBatch::Page::kZero) backing_.forget({one.page, 1});
  }
  const auto writes = flush_batch_.writes(buffer, options_.block_max_pages);
  const Status written = writes.empty() ? Status{} : write_patiently(writes);
  if (written) {
    for (const auto& [run, at, soon] : writes) {
      counters_.bytes_written.fetch_add(run.count * base::kPageBytes, std::memory_order_relaxed);
      heat(run.first, base::Heat::kBytesWritten, run.count * base::kPageBytes);
    }
  }
  Lock lock(mutex_);
  for (const FlushBatch::Page& one : flush_batch_.pages()) note_flushed(one, written.has_value());
  if (!flush_list_.quiet().empty()) evictors_.wake();
  return written;
}

// All zeros: nothing is known.
static void set_known(PageTable& table, PageNumber page, PageHash hash) {
  Block& block = table.block(table.tag(page));
  if (block.known.kind() != KnownContents::Kind::kHashes) {
    if (hash == PageHash{}) return;
    block.known.prepare_hashes(block.count);
  }
  block.known.set_hash(static_cast<std::uint32_t>(page - block.first), hash);
}

void Pager::note_flushed(const FlushBatch::Page& one, bool written) {
  const bool is_lost = one.found == FlushBatch::Page::kDirty && !written;  // it may have left anything in the store
  if (one.found != FlushBatch::Page::kClean) set_known(table_, one.page, is_lost ? PageHash{} : one.hash);
  if (!one.in_view) {
    // What came into view meanwhile has been listed anew. Nothing left it.
    if (!is_lost && table_.state(one.page) != PageState::kPresent) flush_list_.unlist(one.page);
  } else if (one.found != FlushBatch::Page::kClean) {
    flush_list_.note_changed(one.page);
  } else if (flush_list_.note_unchanged(one.page) && told_writes_.is_on()) {
    flush_list_.note_quiet(one.page);
  }
}

// Of one block, in view, not being written, and still listed.
static PageRun next_quiet(const FlushList& list, const PageTable& table, std::size_t& at) {
  PageRun run;
  BlockId id = 0;
  for (; at < list.quiet().size() && run.count < kGuardedAtOnce; ++at) {
    const PageNumber page = list.quiet()[at];
    if (run.count != 0 && page != run.first + run.count) break;
    const Extent* const extent = table.find(page);
    const BlockId owner = extent->tag[page % kExtentPages];
    const bool fits =
        extent->state[page % kExtentPages] == PageState::kPresent && list.is_listed(page) && !table.block(owner).busy;
    if (run.count == 0 && !fits) continue;
    if (run.count != 0 && (!fits || owner != id)) break;
    if (run.count == 0) run.first = page, id = owner;
    ++run.count;
  }
  return run;
}

// By the evictor, whose stack lies elsewhere, and with what eviction takes: who may not lose a page from view now
// cannot have it guarded either.
void Pager::guard_quiet() {
  door_.lock_unwoken(leaving_view_);
  const base::LockGuard leaving_view(leaving_view_, std::adopt_lock);
  lock_awake(mutex_);
  const base::LockGuard lock(mutex_, std::adopt_lock);
  flush_list_.sort_quiet();
  // Runs may be of one page. A flush that waits here is let in after some pages, not after each run: while it looks at
  // all of them again, none is guarded.
  std::uint32_t at_a_stretch = 0;
  for (std::size_t at = 0; at < flush_list_.quiet().size() && moving_.may_evict();) {
    const PageRun run = next_quiet(flush_list_, table_, at);
    if (run.count == 0) break;
    guard_run(run);
    at_a_stretch += run.count;
    if (at_a_stretch < kGuardedAtOnce || !door_.is_wanted()) continue;
    at_a_stretch = 0;
    mutex_.unlock();
    leaving_view_.unlock();
    door_.wait();
    door_.lock_unwoken(leaving_view_);
    lock_awake(mutex_);
  }
  flush_list_.forget_quiet();
}

// Out of view the pages are compared once more: what was written since a flush looked at them is found. What the kernel
// has pinned for a device, which no guard holds up, it does not let go of.
void Pager::guard_run(PageRun run) {
  const BlockId id = table_.tag(run.first);
  Block& block = table_.block(id);
  const PageNumber block_first = block.first;  // `wanted`, in the same word, is written meanwhile
  for (std::uint32_t i = 0; i < run.count; ++i) table_.set_state(run.first + i, PageState::kTakingOut);
  room_.came(run.count);  // for a moment there are two copies
  moving_.begin();
  mutex_.unlock();
  std::array<View::Taken, kGuardedAtOnce> answers;
  view_.take_out(run, {answers.data(), run.count});
  forget_gone(run, answers.data());
  std::array<bool, kGuardedAtOnce> same;
  const auto is_taken = [&](std::uint32_t i) { return answers[i] == View::Taken::kTaken; };
  for (std::uint32_t i = 0; i < run.count; ++i) {
    const auto index = static_cast<std::uint32_t>(run.first + i - block_first);
    same[i] = is_taken(i) && block.known.is_stored(index, hash_page(view_.staging(run.first + i)));
  }
  for (std::uint32_t i = 0; i < run.count;) {
    PageRun part{run.first + i, 1};
    while (i + part.count < run.count && same[i + part.count] == same[i] && is_taken(i + part.count) == is_taken(i)) {
      ++part.count;
    }
    if (same[i]) {
      view_.copy_back(part, View::Guard::kOn);
      view_.drop_staging({&part, 1});
    } else if (is_taken(i)) {
      view_.put_back(part);
    }
    i += part.count;
  }
  mutex_.lock();
  room_.went(run.count);
  if (block.wanted) view_.wake(run);
  block.wanted = false;
  for (std::uint32_t i = 0; i < run.count; ++i) {
    const PageNumber page = run.first + i;
    if (answers[i] == View::Taken::kGone) {
      table_.set_state(page, PageState::kFresh);
      table_.tag(page) = 0;
      leave_block(id, 1);
      continue;
    }
    table_.set_state(page, PageState::kPresent);
    same[i] ? flush_list_.note_guarded(page) : flush_list_.be_patient(page);
  }
  moving_.end();
}

}  // namespace farheap::pager
