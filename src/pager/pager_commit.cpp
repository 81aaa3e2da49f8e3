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

void Pager::written(PageNumber page) {
  if (let_write_for_flush(page)) return;
  counters_.faults.fetch_add(1, std::memory_order_relaxed);
  if (has_owners_) return claim_and_let_write(page);
  door_.lock(mutex_);
  Lock lock(mutex_, std::adopt_lock);
  moving_.wait_for_thaw(mutex_);
  let_write(page);
}

bool Pager::written_at_once(PageNumber page) {
  if (let_write_for_flush(page)) return true;
  if (has_owners_) return false;
  door_.lock(mutex_);
  Lock lock(mutex_, std::adopt_lock);
  if (moving_.is_frozen()) return false;
  counters_.faults.fetch_add(1, std::memory_order_relaxed);
  let_write(page);
  return true;
}

void Pager::let_write(PageNumber page) {
  if (table_.state(page) != PageState::kPresent) return view_.wake({page, 1});  // it has left meanwhile: a miss
  if (cut_.are_writes_forbidden()) {
    options_.lost({ErrorCode::kInvalidArgument, "the program wrote to a heap that it had opened for reading",
                   "page " + std::to_string(page), "what is read there is a version that never changes",
                   "open it with open(), or copy what is to be changed"});
    return;
  }
  if (changes_.is_waiting(page)) {
    cut_.save(page);
    moving_.tell();
  }
  changes_.note_changed({page, 1});
  view_.release({page, 1});
}

void Pager::forbid_writes(bool on) {
  Lock lock(mutex_);
  cut_.forbid_writes(on);
}

bool Pager::has_changes() const {
  Lock lock(mutex_);
  return changes_.any_changed();
}

void Pager::keep_changed(std::vector<PageNumber>& pages) const {
  Lock lock(mutex_);
  std::erase_if(pages, [&](PageNumber page) FARHEAP_REQUIRES(mutex_) { return !changes_.is_changed(page); });
}

std::uint64_t Pager::begin_commit(const std::function<void()>& at_cut) {
  pause_eviction(true);
  freeze();
  mutex_.assume_held();  // until thaw()
  ++revocations_;
  const std::uint64_t pages = cut_.begin();
  at_cut();
  thaw();
  return pages;
}

// As Cut's, and waits for what is between two places.
PageRun Pager::copy_waiting(PageNumber from, PageNumber end, std::uint32_t most, std::byte* into) {
  for (;;) {
    if (const auto copied = cut_.copy_waiting(from, end, most, into)) {
      if (copied->count != 0) moving_.tell();  // somebody may wait to discard them
      return *copied;
    }
    moving_.wait_for(mutex_, std::chrono::milliseconds(1));
  }
}

namespace {

// Pages of a commit, as many as fit in its buffer.
class CommitBatch {
 public:
  CommitBatch(std::byte* buffer, const Pager::Take& take) : buffer_(buffer), take_(take) {}
  [[nodiscard]] std::uint32_t room() const { return Pager::kCommitPages - pages_; }
  [[nodiscard]] std::byte* end() const { return buffer_ + pages_ * base::kPageBytes; }
  // Their bytes are at end().
  [[nodiscard]] Status add(PageRun run) {
    if (!runs_.empty() && runs_.back().first + runs_.back().count == run.first) {
      runs_.back().count += run.count;
    } else {
      runs_.push_back(run);
    }
    pages_ += run.count;
    return room() == 0 ? flush() : Status{};
  }
  [[nodiscard]] Status flush() {
    if (runs_.empty()) return {};
    Status status = take_(runs_, buffer_);
    runs_.clear();
    pages_ = 0;
    return status;
  }

 private:
  std::byte* buffer_;
  const Pager::Take& take_;
  std::vector<PageRun> runs_;
  std::uint32_t pages_ = 0;
};

}  // namespace

Status Pager::take_commit(std::byte* buffer, const Take& take) {
  CommitBatch batch(buffer, take);
  std::vector<std::uint32_t> extents;
  {
    Lock lock(mutex_);
    extents = changes_.extents_of_commit();
  }
  std::sort(extents.begin(), extents.end());
  for (const std::uint32_t extent : extents) {
    PageNumber from = PageNumber{extent} * kExtentPages;
    const PageNumber end = from + kExtentPages;
    while (from < end) {
      PageRun run;
      {
        Lock lock(mutex_);
        run = copy_waiting(from, end, batch.room(), batch.end());
      }
      if (run.count == 0) break;
      from = run.first + run.count;
      door_.wait();
      if (Status status = batch.add(run); !status) return status;
    }
  }
  std::vector<Cut::Saved> saved;
  {
    Lock lock(mutex_);
    saved = cut_.take_saved();
  }
  std::sort(saved.begin(), saved.end(), [](const auto& a, const auto& b) { return a.page < b.page; });
  for (const Cut::Saved& one : saved) {
    std::memcpy(batch.end(), one.bytes.get(), base::kPageBytes);
    if (Status status = batch.add({one.page, 1}); !status) return status;
  }
  return batch.flush();
}

void Pager::end_commit(bool done) {
  Lock lock(mutex_);
  cut_.end(done);
  moving_.tell();
  evictors_.wake();
}

}  // namespace farheap::pager
