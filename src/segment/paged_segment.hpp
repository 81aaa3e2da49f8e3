// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The segment that serves an unmodified program: a range of addresses at a fixed place, whose pages leave memory for
// a scratch store when the budget asks for it.
//
// Two lives. While the addresses handed out, with all else the process tree has, stay below the budget, it is plain
// anonymous memory: no thread, no userfaultfd, no store. The call of obtain() that could overshoot wakes the second:
// the store is opened, the range is registered, what is in memory is adopted by the pager, threads start.
//
// Thread-safety: any thread.
#pragma once

#include <signal.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "base/options.hpp"
#include "base/run_page.hpp"
#include "farheap/store.hpp"
#include "os/mapping.hpp"
#include "pager/fault_loop.hpp"
#include "pager/kernel_view.hpp"
#include "pager/pager.hpp"
#include "pager/tree_budget.hpp"
#include "segment/block_map.hpp"
#include "segment/page_space.hpp"
#include "segment/run_allocator.hpp"

namespace farheap::segment {

class PagedSegment final : public PageSpace {
 public:
  // Reserves the addresses of slot `options.heap_id`. kConflict when something is there, kNoSpace when overcommit or
  // RLIMIT_AS forbids it. `options` and `run_page` outlive the segment.
  [[nodiscard]] static Result<std::unique_ptr<PagedSegment>> make(const base::Options& options,
                                                                  base::RunPage& run_page);

  [[nodiscard]] std::byte* base() const override { return range_.data(); }
  [[nodiscard]] std::size_t capacity_bytes() const override { return range_.size(); }
  [[nodiscard]] std::byte* obtain(std::size_t bytes, std::size_t alignment) override;
  void give_back(std::byte* at, std::size_t bytes) override;
  void discard(std::byte* at, std::size_t bytes) override;
  [[nodiscard]] bool extend(std::byte* at, std::size_t bytes, std::size_t new_bytes) override;

  // As munmap(): what the program did to these pages (protected, locked, mapped over) is undone, and parts of the
  // run may have been given back before.
  void unmap(std::byte* at, std::size_t bytes);
  // As mmap() over a mapping that stays: zeros, readable and writable.
  void renew(std::byte* at, std::size_t bytes);
  // The program maps something of its own over a part of the range, or locks memory.
  void note_foreign() { foreign_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool has_foreign() const { return foreign_.load(std::memory_order_relaxed); }
  void note_locked() { locked_.store(true, std::memory_order_relaxed); }
  // The range is never locked as a whole: all of its addresses would get memory.
  void unlock_range();

  [[nodiscard]] bool contains(const void* at) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(at) - range_.data()) < range_.size();
  }
  [[nodiscard]] bool is_paging() const { return paging_.load(std::memory_order_acquire); }
  // Pages leave by being copied: the kernel has no UFFDIO_MOVE, or it is masked.
  [[nodiscard]] bool copies_pages() const { return is_paging() && !view_->userfault().features().move; }
  // Takes what the run holds now into its peak (TreeBudget::note_use).
  void note_use() { budget_.note_use(); }
  // False if the range is not paged (yet).
  bool hint(pager::HintKind kind, const void* at, std::size_t bytes);

  // Around fork(): between the first and one of the others nothing moves. The child gets a segment of its own that
  // shares what is in the store until one of the two writes.
  void pause_eviction();
  void lock_for_fork();
  void unlock_in_parent();
  void unlock_in_child();

 private:
  PagedSegment(const base::Options& options, base::RunPage& run_page, os::Mapping range);
  void advise_plain_life();
  // Requires: runs_mutex_ is held. What was handed out is in a core dump; the rest of the range would make one a
  // terabyte long.
  void note_handed_out_until(const std::byte* end);
  // Starts paging if `more` bytes could go over the budget.
  void make_sure_of_budget(std::size_t more);
  [[nodiscard]] Status start_paging();
  void adopt_what_is_in_memory();
  void drop_plain(std::byte* at, std::size_t bytes);

  const base::Options& options_;
  base::RunPage& run_page_;
  os::Mapping range_;
  std::mutex runs_mutex_;
  RunAllocator runs_;        // guarded by runs_mutex_
  std::size_t highest_ = 0;  // guarded by runs_mutex_: nothing was handed out beyond
  std::size_t dumped_ = 0;   // guarded by runs_mutex_: core dumps hold the range up to here
  std::atomic<std::size_t> handed_out_{0};
  std::atomic<std::size_t> dropped_{0};  // in the plain life, since the peak was looked at
  std::atomic<bool> foreign_{false};
  std::atomic<bool> locked_{false};

  // Held shared while plain memory is dropped, alone while paging starts.
  std::shared_mutex life_;
  std::mutex fork_;
  sigset_t before_fork_{};  // guarded by fork_: the forking thread's signal mask
  std::atomic<bool> paging_{false};
  pager::TreeBudget budget_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<BlockMap> map_;
  std::unique_ptr<pager::KernelView> view_;
  std::unique_ptr<pager::Pager> pager_;
  std::unique_ptr<pager::FaultLoop> loop_;
};

}  // namespace farheap::segment
