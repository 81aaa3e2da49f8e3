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

// What is known of a page that the store does not have, because it is all zeros.
PageHash hash_of_zeros() {
  alignas(base::kPageBytes) static const std::byte zeros[base::kPageBytes]{};
  static const PageHash hash = hash_page(zeros);
  return hash;
}
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
    if (Status listed = list_pages(); !listed) return listed;
    from = choose_for_flush(from, buffer);
    if (flushing_.empty()) return {};
    if (Status flushed = flush_batch(buffer); !flushed) return flushed;
  }
  return {};
}

Status Pager::list_pages() {
  if (flush_list_.is_on()) return {};  // set with leaving_view_, which Still has
  auto made = FlushList::make(options_.capacity_pages);
  if (!made) return fail(std::move(made.error()));
  Lock lock(mutex_);
  flush_list_ = std::move(*made);
  table_.list_for_flushes(flush_list_);
  guards_quiet_ = view_.tells_every_write();
  return {};
}

// Without the mutex. Where pages are guarded for flushes, nothing else guards them: what is being taken out is away,
// not guarded, and to release it does nothing.
bool Pager::let_write_for_flush(PageNumber page) {
  if (!guards_quiet_.load()) return false;
  counters_.faults.fetch_add(1, std::memory_order_relaxed);
  flush_list_.tell_write(page);
  view_.release({page, 1});
  return true;
}

// Pages that are listed, from this one on, as many as fit. Copies those that are out of view, which with the mutex stay
// where they are. Returns where to go on.
PageNumber Pager::choose_for_flush(PageNumber from, std::byte* buffer) {
  flushing_.clear();
  Lock lock(mutex_);
  flush_list_.take_writes(table_.pages_end(), [&](PageNumber page) {
    if (is_in_memory(table_.state(page))) flush_list_.note_written(page);
  });
  std::uint32_t copies = 0;
  while (flushing_.size() < kFlushPages) {
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
      std::memcpy(buffer + flushing_.size() * base::kPageBytes, view_.staging(from), base::kPageBytes);
      if (++copies % kCopiesUnderLock == 0) door_.let_through(mutex_);
    }
    flushing_.push_back({from++, in_view, Flushed::kClean, {}});
  }
  return from;
}

// Copies what is in view, and tells what differs from the store.
Status Pager::examine_for_flush(std::byte* buffer) {
  for (std::size_t i = 0; i < flushing_.size();) {
    if (!flushing_[i].in_view) {
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    while (end < flushing_.size() && flushing_[end].in_view && flushing_[end].page == flushing_[end - 1].page + 1) {
      ++end;
    }
    const PageRun run{flushing_[i].page, static_cast<std::uint32_t>(end - i)};
    if (!view_.read_shown(run, buffer + i * base::kPageBytes)) {
      return fail(ErrorCode::kUnavailable, "cannot flush the heap", "page " + std::to_string(run.first),
                  "the kernel does not let its memory be read", "do not flush while parts of the heap are mapped over");
    }
    i = end;
  }
  for (std::size_t i = 0; i < flushing_.size(); ++i) {
    const std::byte* const bytes = buffer + i * base::kPageBytes;
    const bool is_zero = is_zero_page(bytes);
    flushing_[i].found = is_zero ? Flushed::kZero : Flushed::kDirty;
    flushing_[i].hash = is_zero ? hash_of_zeros() : hash_page(bytes);
  }
  Lock lock(mutex_);
  for (Flushed& one : flushing_) {
    const Block& block = table_.block(table_.tag(one.page));
    if (block.known.is_stored(static_cast<std::uint32_t>(one.page - block.first), one.hash)) {
      one.found = Flushed::kClean;
    }
  }
  return {};
}

Status Pager::flush_batch(std::byte* buffer) {
  if (Status examined = examine_for_flush(buffer); !examined) return examined;
  flush_writes_.clear();
  std::uint64_t dirty = 0;
  for (std::size_t i = 0; i < flushing_.size(); ++i) {
    const Flushed& one = flushing_[i];
    if (one.found == Flushed::kZero) backing_.forget({one.page, 1});
    if (one.found != Flushed::kDirty) continue;
    ++dirty;
    add_page(flush_writes_, one.page, buffer + i * base::kPageBytes, options_.block_max_pages);
  }
  const Status written = flush_writes_.empty() ? Status{} : write_patiently(flush_writes_);
  if (written) {
    counters_.bytes_written.fetch_add(dirty * base::kPageBytes, std::memory_order_relaxed);
    for (const auto& [run, at, soon] : flush_writes_)
      heat(run.first, base::Heat::kBytesWritten, run.count * base::kPageBytes);
  }
  Lock lock(mutex_);
  for (const Flushed& one : flushing_) note_flushed(one, written.has_value());
  if (!quiet_.empty()) evictor_.wake();
  return written;
}

void Pager::note_flushed(const Flushed& one, bool written) {
  const bool is_lost = one.found == Flushed::kDirty && !written;  // it may have left anything in the store
  if (one.found != Flushed::kClean) set_known(one.page, is_lost ? PageHash{} : one.hash);
  if (!one.in_view) {
    // What came into view meanwhile has been listed anew. Nothing left it.
    if (!is_lost && table_.state(one.page) != PageState::kPresent) flush_list_.unlist(one.page);
  } else if (one.found != Flushed::kClean) {
    flush_list_.note_changed(one.page);
  } else if (flush_list_.note_unchanged(one.page) && guards_quiet_) {
    quiet_.push_back(one.page);
  }
}

// All zeros: nothing is known.
void Pager::set_known(PageNumber page, PageHash hash) {
  Block& block = table_.block(table_.tag(page));
  if (block.known.kind() != KnownContents::Kind::kHashes) {
    if (hash == PageHash{}) return;
    block.known.prepare_hashes(block.count);
  }
  block.known.set_hash(static_cast<std::uint32_t>(page - block.first), hash);
}

// By the evictor, whose stack lies elsewhere, and with what eviction takes: who may not lose a page from view now
// cannot have it guarded either.
void Pager::guard_quiet() {
  std::sort(quiet_.begin(), quiet_.end());
  for (std::size_t at = 0; at < quiet_.size() && moving_.may_evict();) {
    const PageRun run = next_quiet(at);
    if (run.count == 0) break;
    guard_run(run);
    if (!door_.is_wanted()) continue;
    mutex_.unlock();
    leaving_view_.unlock();
    door_.wait();
    leaving_view_.lock();
    mutex_.lock();
  }
  quiet_.clear();  // what was left out is found quiet again
}

// Of one block, in view, not being written, and still listed.
PageRun Pager::next_quiet(std::size_t& at) const {
  PageRun run;
  BlockId id = 0;
  for (; at < quiet_.size() && run.count < kGuardedAtOnce; ++at) {
    const PageNumber page = quiet_[at];
    if (run.count != 0 && page != run.first + run.count) break;
    const Extent* const extent = table_.find(page);
    const BlockId owner = extent->tag[page % kExtentPages];
    const bool fits = extent->state[page % kExtentPages] == PageState::kPresent && flush_list_.is_listed(page) &&
                      !table_.block(owner).busy;
    if (run.count == 0 && !fits) continue;
    if (run.count != 0 && (!fits || owner != id)) break;
    if (run.count == 0) run.first = page, id = owner;
    ++run.count;
  }
  return run;
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
