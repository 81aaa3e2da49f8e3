// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the program has written is brought to the store, and stays in memory.
//
// Which pages differ from the store is told by their hashes, as when they leave. What is written is a copy, so that the
// program goes on meanwhile; the hash that is noted is the copy's, and what is written later differs from it.
//
// The invariant: while a batch is under way nothing leaves the view, and so the evictor begins no round and nobody
// discards (Still); what an earlier round still writes is waited for. So no page is written by two at a time, and no
// older copy comes after a newer one.
#include <algorithm>
#include <cassert>
#include <cstring>

#include "pager/pager.hpp"

namespace farheap::pager {

struct Pager::Flushed {
  PageNumber page;
  bool in_view;
  enum : std::uint8_t { kClean, kZero, kDirty } found;
  PageHash hash;
};

namespace {
constexpr std::uint32_t kCopiesUnderLock = 64;
}  // namespace

Status Pager::flush(std::byte* buffer) {
  assert(!changes_.tracked());
  std::vector<Flushed> batch;
  for (PageNumber from = 0;;) {
    const Still still(*this);
    batch.clear();
    from = choose_for_flush(from, buffer, batch);
    if (batch.empty()) return {};
    if (Status flushed = flush_batch(buffer, batch); !flushed) return flushed;
  }
}

// Pages in memory from this one on, as many as fit. Copies those that are out of view, which with the mutex stay where
// they are. Returns where to go on.
PageNumber Pager::choose_for_flush(PageNumber from, std::byte* buffer, std::vector<Flushed>& batch) {
  Lock lock(mutex_);
  std::uint32_t copies = 0;
  while (from < table_.pages_end() && batch.size() < kFlushPages) {
    const Extent* const extent = table_.find(from);
    if (extent == nullptr) {
      from = (from / kExtentPages + 1) * kExtentPages;
      continue;
    }
    const PageState state = extent->state[from % kExtentPages];
    if (state == PageState::kFresh || state == PageState::kStored) {
      ++from;
      continue;
    }
    // On its way. One that is coming in may have been written to already: who waited for it is woken before its state
    // says that it is there.
    const bool rests = state == PageState::kPresent || state == PageState::kProbation;
    if (!rests || table_.block(extent->tag[from % kExtentPages]).busy) {
      room_.wait(lock);
      continue;
    }
    const bool in_view = state == PageState::kPresent;
    if (!in_view) {
      std::memcpy(buffer + batch.size() * base::kPageBytes, view_.staging(from), base::kPageBytes);
      if (++copies % kCopiesUnderLock == 0) let_faults_through(lock);
    }
    batch.push_back({from++, in_view, Flushed::kClean, {}});
  }
  return from;
}

// Copies what is in view, and tells what differs from the store.
Status Pager::examine_for_flush(std::byte* buffer, std::vector<Flushed>& batch) {
  for (std::size_t i = 0; i < batch.size();) {
    if (!batch[i].in_view) {
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    while (end < batch.size() && batch[end].in_view && batch[end].page == batch[end - 1].page + 1) ++end;
    const PageRun run{batch[i].page, static_cast<std::uint32_t>(end - i)};
    if (!view_.read_shown(run, buffer + i * base::kPageBytes)) {
      return fail(ErrorCode::kUnavailable, "cannot flush the heap", "page " + std::to_string(run.first),
                  "the kernel does not let its memory be read", "do not flush while parts of the heap are mapped over");
    }
    i = end;
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const std::byte* const bytes = buffer + i * base::kPageBytes;
    batch[i].found = is_zero_page(bytes) ? Flushed::kZero : Flushed::kDirty;
    // What is out of view the evictor may be writing now.
    if (batch[i].found == Flushed::kDirty && batch[i].in_view && rests_as(batch[i].page, bytes)) {
      batch[i].found = Flushed::kClean;
    }
    if (batch[i].found == Flushed::kDirty) batch[i].hash = hash_page(bytes);
  }
  Lock lock(mutex_);
  for (Flushed& one : batch) {
    const Block& block = table_.block(table_.tag(one.page));
    const auto index = static_cast<std::uint32_t>(one.page - block.first);
    if (one.found == Flushed::kDirty && block.known.is_stored(index, one.hash)) one.found = Flushed::kClean;
  }
  return {};
}

Status Pager::flush_batch(std::byte* buffer, std::vector<Flushed>& batch) {
  if (Status examined = examine_for_flush(buffer, batch); !examined) return examined;
  std::vector<Backing::Write> writes;
  std::uint64_t dirty = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Flushed& one = batch[i];
    if (one.found == Flushed::kZero) backing_.forget({one.page, 1});
    if (one.found != Flushed::kDirty) continue;
    ++dirty;
    add_page(writes, one.page, buffer + i * base::kPageBytes, options_.block_max_pages);
  }
  const Status written = writes.empty() ? Status{} : write_patiently(writes);
  if (written) {
    counters_.bytes_written.fetch_add(dirty * base::kPageBytes, std::memory_order_relaxed);
    for (const auto& [run, at] : writes) heat(run.first, base::Heat::kBytesWritten, run.count * base::kPageBytes);
  }
  Lock lock(mutex_);
  for (const Flushed& one : batch) {
    if (one.found == Flushed::kClean) continue;
    // A failed write may have left anything in the store.
    note_flushed(one.page, written && one.found == Flushed::kDirty ? one.hash : PageHash{});
  }
  return written;
}

// All zeros: nothing is known.
void Pager::note_flushed(PageNumber page, PageHash hash) {
  Block& block = table_.block(table_.tag(page));
  if (block.known.kind() != KnownContents::Kind::kHashes) {
    if (hash == PageHash{}) return;
    block.known.prepare_hashes(block.count);
  }
  block.known.set_hash(static_cast<std::uint32_t>(page - block.first), hash);
}

}  // namespace farheap::pager
