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
#include <functional>
#include <memory>
#include <utility>

#include "base/mutex.hpp"
#include "base/options.hpp"
#include "base/run_page.hpp"
#include "base/secret.hpp"
#include "farheap/store.hpp"
#include "os/mapping.hpp"
#include "pager/core_index.hpp"
#include "pager/tree_budget.hpp"
#include "segment/address_books.hpp"
#include "segment/block_map.hpp"
#include "segment/early_hints.hpp"
#include "segment/file_copies.hpp"
#include "segment/guards.hpp"
#include "segment/page_space.hpp"
#include "segment/paging.hpp"
#include "segment/tier.hpp"

namespace farheap::segment {

class PagedSegment final : public PageSpace {
 public:
  static constexpr unsigned kReaders = 2;  // while one puts a piece into view the other reads the next

  // Reserves the addresses of slot `options.heap_id`. kConflict when something is there, kNoSpace when overcommit or
  // RLIMIT_AS forbids it. `options` and `run_page` outlive the segment. `secret_store`: what is opened in
  // place of options.store, which is the same without a password; empty if there is none.
  [[nodiscard]] static Result<std::unique_ptr<PagedSegment>> make(const base::Options& options, base::RunPage& run_page,
                                                                  base::Secret secret_store = {});

  [[nodiscard]] std::byte* base() const override { return range_.data(); }
  [[nodiscard]] std::size_t capacity_bytes() const override { return range_.size(); }
  [[nodiscard]] std::byte* obtain(std::size_t bytes, std::size_t alignment) override;
  void give_back(std::byte* at, std::size_t bytes) override;
  void discard(std::byte* at, std::size_t bytes) override;
  [[nodiscard]] bool extend(std::byte* at, std::size_t bytes, std::size_t new_bytes) override;

  // ---- what the program's own allocators do (segment_mappings.cpp). `protection` is mprotect()'s; those that can fail
  // answer 0 or an errno.
  // Addresses that are not accessible, cost nothing and count for nothing until they are opened. nullptr: no room.
  [[nodiscard]] std::byte* reserve(std::size_t bytes);
  // Just these addresses, if they are free.
  [[nodiscard]] bool obtain_at(std::byte* at, std::size_t bytes, int protection);
  // As mmap() of anonymous memory over whatever is there: zeros. PROT_NONE makes it a reservation.
  [[nodiscard]] int map_over(std::byte* at, std::size_t bytes, int protection);
  // Open pages become a private copy of a file, which is mapped at `file` to be read. True: that mapping belongs to the
  // segment now. False: the file cannot be read, and the pages hold parts of it.
  [[nodiscard]] bool copy_file(std::byte* at, std::size_t bytes, std::byte* file);
  // Pages that read as zeros, because the program dropped them, show what their files have. Whoever touches them
  // meanwhile may see zeros. False: a file cannot be read any more.
  [[nodiscard]] bool show_files(std::byte* at, std::size_t bytes);
  // As mprotect(), or pkey_mprotect() with a key that is not kNoKey.
  [[nodiscard]] int protect(std::byte* at, std::size_t bytes, int protection, int key = kNoKey);
  // As madvise(MADV_DONTNEED): what is shut and holds nothing does not count any longer.
  void empty(std::byte* at, std::size_t bytes);
  // As munmap(): what the program did to these pages (protected, locked, mapped over) is undone, and parts of the
  // run may have been given back before. Touching them ends the program, as far as the kernel has mappings for that.
  void unmap(std::byte* at, std::size_t bytes);
  // The program is about to map something else over a part of the range, or locks memory, or keeps some out of dumps.
  void make_way(std::byte* at, std::size_t bytes);
  void note_locked() { locked_.store(true, std::memory_order_relaxed); }
  void note_undumped() { undumped_.store(true, std::memory_order_relaxed); }
  // All of it: mapped to something else; a reservation not opened yet; shut, whether it holds something or not;
  // accessible. Otherwise it is mixed.
  enum class Holding { kForeign, kReserved, kShut, kOpen, kMixed };
  [[nodiscard]] Holding holding(std::byte* at, std::size_t bytes);
  [[nodiscard]] bool is_foreign(std::byte* at, std::size_t bytes);
  // The range is never locked as a whole: all of its addresses would get memory.
  void unlock_range();

  [[nodiscard]] bool contains(const void* at) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(at) - range_.data()) < range_.size();
  }
  [[nodiscard]] bool is_paging() const { return is_paging_.load(std::memory_order_acquire); }
  // Pages leave by being copied: the kernel has no UFFDIO_MOVE, or it is masked.
  [[nodiscard]] bool copies_pages() const { return is_paging() && !paging_->view().features().move; }
  // Takes what the run holds now into its peak (TreeBudget::note_use).
  void note_use() { budget_.note_use(); }
  // From the time on when it is paged. Requires: called before another thread uses the segment; the observer outlives
  // it.
  void observe_faults(pager::FaultObserver& observer) { observer_ = &observer; }
  // While it is paged: who is to be recorded may be known later (Paging::observe). Requires: is_paging().
  [[nodiscard]] Status observe_for_a_while(pager::FaultObserver& observer);
  void take_sampled_out() { paging_->take_sampled_out(); }
  void observe_no_more() { paging_->observe_no_more(); }
  // In a forked child, before unlock_in_child().
  void leave_observer_to_parent() {
    observer_ = nullptr;
    if (is_paging()) paging_->leave_observer_to_parent();
  }
  // Pages that may be in memory. Requires: is_paging(), and not called by a handler.
  [[nodiscard]] std::uint64_t page_limit() const { return paging_->pager().page_limit(); }
  // From the time on when it is paged. Requires: as of observe_faults().
  void accompany(Companion& companion) { companion_ = &companion; }
  // The same of who knows in which order pages will be used.
  void ask_for_order(pager::OrderSource& source) { order_source_ = &source; }
  // The same of an order that is known as soon as paging begins, when it is asked for; nullptr: it is not known.
  using KnownOrder = std::function<std::shared_ptr<const pager::PageOrder>()>;
  void expect_order(KnownOrder known) { known_order_ = std::move(known); }
  // All uses of pages are recorded, in place of whatever else may be learnt or expected of them.
  void record_uses(pager::MakeUseRecording make) { make_recording_ = std::move(make); }
  // Those of a sample are, for whoever observes.
  void sample_uses(pager::MakeUseSampling make) { make_sampling_ = std::move(make); }
  // False if it begins elsewhere (Paging::hint). What is said to be kept, or streamed, before it is paged holds from
  // then on.
  bool hint(pager::HintKind kind, const void* at, std::size_t bytes) {
    return is_paging() ? paging_->hint(kind, at, bytes) : hint_early(kind, at, bytes);
  }
  // Paging::expect_order(). What is said before it is paged holds from then on.
  bool expect_order(std::span<const farheap_step> steps, std::size_t round);

  // For the guards of the program's modules.
  [[nodiscard]] Guards& guards() { return guards_; }

  // What the program wrote before is in the store when this returns (Pager::flush); paging begins, if it has not yet.
  // Requires: not called by a signal handler.
  [[nodiscard]] Status flush();

  // Around fork(): between the first and one of the others nothing moves. The child gets a segment of its own that
  // shares what is in the store until one of the two writes.
  // Not analysed: what one locks another one unlocks.
  void pause_eviction() FARHEAP_NO_THREAD_SAFETY_ANALYSIS;
  // After it: a stack that ends here may lie in the range, and what is below have left. Nobody can bring that while the
  // locks of a fork are held.
  void touch_stack(const void* end);
  void lock_for_fork() FARHEAP_NO_THREAD_SAFETY_ANALYSIS;
  void unlock_in_parent() FARHEAP_NO_THREAD_SAFETY_ANALYSIS;
  void unlock_in_child() FARHEAP_NO_THREAD_SAFETY_ANALYSIS;

  static constexpr int kNoKey = -1;
  // What unmapping may leave inaccessible, each run of it a mapping: of the 65,530 that a process may have.
  static constexpr std::size_t kMostShutRuns = 8192;

 private:
  PagedSegment(const base::Options& options, base::RunPage& run_page, base::Secret secret_store, os::Mapping range);
  void advise_plain_life();
  // What was handed out is in a core dump; the rest of the range would make one a terabyte long.
  void note_handed_out_until(const std::byte* end) FARHEAP_REQUIRES(runs_mutex_);
  // Free addresses become accessible; false if the kernel has no mappings left.
  [[nodiscard]] bool open_run(std::byte* at, std::size_t bytes, int protection) FARHEAP_REQUIRES(runs_mutex_);
  [[nodiscard]] int protect_own(std::byte* at, std::size_t bytes, int protection, int key);
  void count_anew() FARHEAP_REQUIRES(runs_mutex_) {
    handed_out_.store(books_.counted_bytes(), std::memory_order_relaxed);
  }
  // Reservations are no part of a core dump, what was opened of them is.
  void dump_opened(std::byte* at, std::size_t bytes, bool opened) FARHEAP_REQUIRES(runs_mutex_);
  // Zeros, with nothing left of what the program did to these pages. False if the kernel has no mappings left.
  [[nodiscard]] bool renew(std::byte* at, std::size_t bytes, int protection);
  void forget_files(std::byte* at, std::size_t bytes);
  // Starts paging if `more` bytes could go over the budget.
  void make_sure_of_budget(std::size_t more);
  // The same for a fork after which both write to all that they share.
  void make_sure_of_fork();
  void make_room_for_child();
  [[nodiscard]] bool records_pages() const { return make_recording_ != nullptr; }
  [[nodiscard]] PagingSettings paging_settings() const;
  // `tells_writes`: flushes are to come, which have to be told of writes; otherwise the kernel only notes them.
  [[nodiscard]] Status start_paging(bool tells_writes);
  [[nodiscard]] Status open_the_store();
  [[nodiscard]] Status prepare_for_cores();
  void make_tier(std::uint64_t pages);
  [[nodiscard]] AddressBooks::Runs own_runs();
  void drop_what_nobody_has();
  void adopt_what_is_in_memory();
  void drop_plain(std::byte* at, std::size_t bytes);
  void tell_early_hints();
  bool hint_early(pager::HintKind kind, const void* at, std::size_t bytes);
  // Data can no longer be kept.
  [[noreturn]] static void give_up(const Error& error);

  const base::Options& options_;
  base::RunPage& run_page_;
  base::Secret secret_store_;  // until the store is open
  os::Mapping range_;
  base::Mutex runs_mutex_;
  AddressBooks books_ FARHEAP_GUARDED_BY(runs_mutex_);
  FileCopies file_copies_ FARHEAP_GUARDED_BY(runs_mutex_);
  std::size_t highest_ FARHEAP_GUARDED_BY(runs_mutex_) = 0;  // nothing was handed out beyond
  std::size_t dumped_ FARHEAP_GUARDED_BY(runs_mutex_) = 0;   // core dumps hold the range up to here
  std::atomic<std::size_t> handed_out_{0};                   // books_.counted_bytes()
  std::atomic<std::size_t> dropped_{0};                      // in the plain life, since the peak was looked at
  std::atomic<bool> foreign_{false};
  std::atomic<bool> copies_files_{false};
  std::atomic<bool> locked_{false};
  std::atomic<bool> undumped_{false};
  EarlyHints early_hints_ FARHEAP_GUARDED_BY(runs_mutex_);
  std::atomic<bool> has_early_hints_{false};  // there may be some

  // Held shared while plain memory is dropped, alone while paging starts.
  base::SharedMutex life_;
  base::Mutex flush_;
  os::Mapping flush_buffer_ FARHEAP_GUARDED_BY(flush_);
  bool knows_all_ = true;  // set once, before is_paging_: the pager knows of every page in memory
  base::Mutex fork_;
  sigset_t before_fork_ FARHEAP_GUARDED_BY(fork_){};  // the forking thread's signal mask
  std::atomic<bool> is_paging_{false};
  pager::TreeBudget budget_;
  std::string store_uri_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<pager::CoreIndex> core_index_;  // with whole_core=on; set once, and used under runs_mutex_
  std::unique_ptr<BlockMap> map_;
  std::unique_ptr<Tier> tier_;      // before it, if there is one
  std::unique_ptr<Paging> paging_;  // set once, before is_paging_
  pager::FaultObserver* observer_ = nullptr;
  pager::OrderSource* order_source_ = nullptr;
  KnownOrder known_order_;
  pager::MakeUseRecording make_recording_;
  pager::MakeUseSampling make_sampling_;
  pager::OrderChoice::Order early_order_;  // with life_: said by the program before paging began
  Companion* companion_ = nullptr;
  bool unrecorded_ = false;  // with life_: paging could not begin for the sake of a recording
  Guards guards_;
};

}  // namespace farheap::segment
