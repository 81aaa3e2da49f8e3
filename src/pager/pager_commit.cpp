// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pager's part of a commit: the cut, and the bytes of every page as they were there.
//
// The cut falls while nothing is on its way and every fault waits. Changed pages are guarded one run after the other;
// who writes to a guarded one waits until all are. So no write that is left out can have happened before one that is in
// (the writer of the first would have had to go on), no page is half, and what a thread had written before it asked for
// the commit is in.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/log.hpp"
#include "pager/pager.hpp"

namespace farheap::pager {

// The map is asked once for each extent, with the mutex: a block of it may have to be read.
void Pager::learn_extent(PageNumber page) {
  static_assert(kExtentPages == Backing::Stored().size());
  const PageNumber first = page / kExtentPages * kExtentPages;
  const auto stored = backing_.stored_from(first);
  if (!stored) return options_.lost(stored.error());
  (void)table_.extent(page);
  for (std::uint32_t i = 0; i < kExtentPages && stored->any(); ++i) {
    if (stored->test(i)) table_.set_state(first + i, PageState::kStored);
  }
}

void Pager::written(PageNumber page) {
  counters_.faults.fetch_add(1, std::memory_order_relaxed);
  Lock lock = lock_for_fault();
  room_.wait(lock, [&] { return !frozen_; });
  let_write(page);
}

bool Pager::written_at_once(PageNumber page) {
  Lock lock = lock_for_fault();
  if (frozen_) return false;
  counters_.faults.fetch_add(1, std::memory_order_relaxed);
  let_write(page);
  return true;
}

void Pager::let_write(PageNumber page) {
  if (table_.state(page) != PageState::kPresent) return view_.wake({page, 1});  // it has left meanwhile: a miss
  if (writes_forbidden_) {
    options_.lost({ErrorCode::kInvalidArgument, "the program wrote to a heap that it had opened for reading",
                   "page " + std::to_string(page), "what is read there is a version that never changes",
                   "open it with open(), or copy what is to be changed"});
    return;
  }
  if (changes_.is_waiting(page)) save_for_commit(page);
  changes_.note_changed({page, 1});
  view_.release({page, 1});
}

void Pager::save_for_commit(PageNumber page) {
  auto bytes = std::make_unique<std::byte[]>(base::kPageBytes);
  std::memcpy(bytes.get(), view_.shown(page), base::kPageBytes);
  saved_.push_back({page, std::move(bytes)});
  changes_.note_taken(page);
  room_.notify_all();
}

void Pager::forbid_writes(bool on) {
  Lock lock(mutex_);
  writes_forbidden_ = on;
}

bool Pager::has_changes() const {
  Lock lock(mutex_);
  return changes_.any_changed();
}

std::uint64_t Pager::begin_commit(const std::function<void()>& at_cut) {
  pause_eviction(true);
  freeze();
  committing_ = true;
  const std::uint64_t pages = changes_.cut([&](PageRun run) {
    table_.for_each_run(run.first, run.first + run.count, PageState::kPresent, 0,
                        [&](PageRun part) { view_.guard(part); });
  });
  at_cut();
  thaw();
  return pages;
}

// Copies the next waiting pages, from `from` on, that lie in a row; `from` goes on behind them. 0: there are none
// before `end`. Requires: `from` and `end` are in one extent.
std::uint32_t Pager::copy_waiting(Lock& lock, PageNumber& from, PageNumber end, PageRun& run, std::byte* buffer) {
  run = {};
  while (from < end) {
    PageRun next = changes_.next_waiting(from, kCommitPages);
    if (next.count == 0 || next.first >= end) return 0;
    run = {next.first, 0};
    for (std::uint32_t i = 0; i < next.count; ++i) {
      const PageNumber page = next.first + i;
      const PageState state = table_.state(page);
      const std::byte* bytes = nullptr;
      if (state == PageState::kPresent) bytes = view_.shown(page);
      if (state == PageState::kProbation || state == PageState::kWriting) bytes = view_.staging(page);
      if (bytes == nullptr) break;  // between the two places
      std::memcpy(buffer + i * base::kPageBytes, bytes, base::kPageBytes);
      changes_.note_taken(page);
      ++run.count;
    }
    if (run.count != 0) {
      from = run.first + run.count;
      room_.notify_all();  // somebody may wait to discard them
      return run.count;
    }
    room_.wait_for(lock, std::chrono::milliseconds(1));
  }
  return 0;
}

Status Pager::take_commit(std::byte* buffer, const Take& take) {
  std::vector<std::uint32_t> extents;
  {
    Lock lock(mutex_);
    extents = changes_.extents_of_commit();
  }
  std::sort(extents.begin(), extents.end());
  for (const std::uint32_t extent : extents) {
    PageNumber from = PageNumber{extent} * kExtentPages;
    const PageNumber end = from + kExtentPages;
    for (;;) {
      PageRun run;
      {
        Lock lock(mutex_);
        if (copy_waiting(lock, from, end, run, buffer) == 0) break;
      }
      wait_for_faults();
      if (Status status = take(run, buffer); !status) return status;
    }
  }
  for (;;) {
    std::vector<Saved> saved;
    {
      Lock lock(mutex_);
      saved.swap(saved_);
    }
    if (saved.empty()) return {};
    std::sort(saved.begin(), saved.end(), [](const Saved& a, const Saved& b) { return a.page < b.page; });
    for (std::size_t i = 0; i < saved.size();) {
      PageRun run{saved[i].page, 0};
      for (; i < saved.size() && run.count < kCommitPages && saved[i].page == run.first + run.count; ++i, ++run.count) {
        std::memcpy(buffer + run.count * base::kPageBytes, saved[i].bytes.get(), base::kPageBytes);
      }
      if (Status status = take(run, buffer); !status) return status;
    }
  }
}

void Pager::end_commit(bool done) {
  Lock lock(mutex_);
  changes_.finish_commit(done);
  saved_.clear();
  committing_ = false;
  room_.notify_all();
  wake_evictor();
}

// While a commit is under way, what it takes stays until it is done (if it fails, nothing else has it), and what was
// changed after the cut would come into it by leaving now. What was opened for reading is never written.
bool Pager::may_leave(const Block& block, BlockId id) const {
  if (!committing_ && !writes_forbidden_) return true;
  for (PageNumber page = block.first; page < block.first + block.count; ++page) {
    if (table_.find(page) == nullptr || table_.find(page)->tag[page % kExtentPages] != id) continue;
    if (changes_.is_changed(page) || changes_.is_committing(page)) return false;
  }
  return true;
}

}  // namespace farheap::pager
