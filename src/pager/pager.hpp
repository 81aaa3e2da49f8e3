// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pager decides which pages are in memory and moves them. It knows nothing of what is allocated in them, of
// stores or of the kernel: what the program sees is behind View, where bytes rest behind Backing, how much may stay
// behind Budget.
//
// The invariant: at every moment the bytes of a page are in exactly the places that its state names (see
// page_table.hpp), and a page whose only up-to-date copy is in memory leaves memory only after the store has
// acknowledged it.
//
// Who calls what:
//   fault()          fault handler threads, one call a fault
//   evict_once()     evictors: move victims to probation, write what has to be written, drop
//   read_ahead_once() the reader: carries out read-ahead and WILL_NEED hints
//   fetch()          threads of the program, ahead of a fault
//   the rest         any thread
//
// What is here is residency: pages that come and pages that leave share the table of them. What else is to be known has
// its own class, guarded by the pager's mutex: Room (how many may be here), Moving (what is on its way), Policy and
// Probation (what leaves), Around and ReadAhead (what comes in with a page, and ahead of it), Changes and Cut
// (commits), FlushList (flushes), Earlier (what the store has from before).
//
// Thread-safety: all calls may be made at the same time; one mutex guards the state. It is let go of while the backing
// reads, writes or forgets pages, a buffer is filled or pages are taken out of view. It is held while the backing is
// asked which pages of an extent it has (stored_from(), at the first touch of each extent; a kept segment may have to
// read a block of its map for that), because the answer becomes the state. Threads of the program hold a second mutex,
// too, so that nothing leaves the view while they are here (see Still); a flush holds that one while it writes.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <vector>

#include "base/condition.hpp"
#include "base/mutex.hpp"
#include "base/run_page.hpp"
#include "pager/around.hpp"
#include "pager/budget.hpp"
#include "pager/changes.hpp"
#include "pager/cut.hpp"
#include "pager/earlier.hpp"
#include "pager/evictors.hpp"
#include "pager/fault_door.hpp"
#include "pager/flush_batch.hpp"
#include "pager/hint.hpp"
#include "pager/incoming.hpp"
#include "pager/leaving.hpp"
#include "pager/moving.hpp"
#include "pager/page_ranges.hpp"
#include "pager/page_table.hpp"
#include "pager/pager_options.hpp"
#include "pager/policy.hpp"
#include "pager/probation.hpp"
#include "pager/read_ahead.hpp"
#include "pager/room.hpp"
#include "pager/told_writes.hpp"
#include "pager/view.hpp"
#include "pager/write_watch.hpp"

namespace farheap::pager {

class Pager {
 public:
  // The three must outlive the pager. kNoSpace if the tables' addresses cannot be reserved.
  [[nodiscard]] static Result<std::unique_ptr<Pager>> make(View& view, Backing& backing, Budget& budget,
                                                           base::RunCounters& counters, PagerOptions options);

  // ---- program side
  // Pages that were in view before the pager came to life. Those that a fault has brought to it already are left alone.
  void adopt(PageRun run);
  // Contents are dropped: the pages read as zeros, memory and store space are given back. The caller sees to it
  // that nobody touches them meanwhile (as with munmap).
  void discard(PageNumber first, std::uint64_t count);
  // Others have changed what the backing has of these pages. They leave memory as they are; the next touch reads the
  // backing anew. What was written to them here and is not in the backing is lost. Waits for a commit that has them.
  // May be called while they are touched: such a touch sees them as they were before, or as they are now; but not by
  // who delivers what the backing reads. Requires: Backing::has_owners().
  void invalidate(PageNumber first, std::uint64_t count);
  // The one door for what is said about pages to come (hint.hpp). Nothing is promised.
  void hint(const Hint& said);
  // From now on pages are expected to be used in this order, as far as the program keeps to it; nullptr: in none that
  // is known. Advice, as hints are. Which of several orders holds: OrderChoice.
  void expect(std::shared_ptr<const PageOrder> order, OrderFrom from = OrderFrom::kPlan);
  // Called now and then by a thread of the runtime: how much an order lets expect to be read depends on how much memory
  // there is by now; and the plan's is expected again when that of the program is over.
  void weigh_order();
  [[nodiscard]] OrderState order_state();  // of the plan's order

  // ---- guards (farheap/residency.h)
  // From now on it is noted there which pages are away. A byte for each page of the capacity, all of them 0; outlives
  // the pager.
  void note_away(std::atomic<std::uint8_t>* away);
  // What fault() does, for a thread of the program that is about to touch a page which is away; nothing, where that is
  // for a fault to do. `buffer`: as for fault(). Requires: this thread's stack does not lie in the pages, and it
  // takes no signals.
  void fetch(PageNumber page, bool write, std::byte* buffer);

  // ---- where it faults
  // From now on what happens is counted there by range, too. The table outlives the pager.
  void heat_goes_to(base::HeatTable& table) { heat_table_ = &table; }
  void heat(PageNumber page, base::Heat kind, std::uint64_t by = 1) {
    if (heat_table_ != nullptr) heat_table_->count(page * base::kPageBytes, kind, by);
  }
  // Who touched it had to wait until now.
  using Clock = base::Clock;
  void note_stall(PageNumber page, Clock::time_point since);

  // ---- runtime threads
  // Brings `page` into view, or finds that somebody else is about to. `buffer`: block_max_pages pages, the
  // caller's own, aligned to the page size. Returns how many of its pages were used, from the first on; as those below.
  std::uint32_t fault(PageNumber page, bool write, std::byte* buffer);

  struct Started {
    PageNumber page = 0;  // that was touched
    Incoming incoming;
    bool ghost = false, sequential = false, hash = false;
    std::uint32_t in_memory = 0;  // of its pages, so many are read without I/O
    [[nodiscard]] bool is_near() const { return in_memory == incoming.pages(); }
    [[nodiscard]] std::uint32_t pages_read() const { return incoming.pages() - in_memory; }
  };
  // The same for a thread that has several reads in flight. kDone: there is nothing to read (any more). kNotNow: it
  // could take long, call fault() when nothing is in flight any more. kReading: `started.incoming` is to be read, and
  // then finish_fault() called.
  enum class Begun { kDone, kNotNow, kReading };
  [[nodiscard]] Begun begin_fault(PageNumber page, bool write, Started& started);
  // `arrived`: where the pages' bytes are; nullptr: they are read now, into `buffer`.
  std::uint32_t finish_fault(const Started& started, const std::byte* arrived, std::byte* buffer);

  enum class Evicted { kIdle, kWorked, kStoreFull };
  // One round, by the evictor of that number (below PagerOptions::evictors; the first has the number 0). kIdle: nothing
  // to do until it is woken (wait_for_eviction_work()).
  [[nodiscard]] Evicted evict_once(unsigned evictor = 0);
  void wait_for_eviction_work(int at_most_ms, unsigned evictor = 0);
  // One request, if there is one; waits for one for a while.
  std::uint32_t read_ahead_once(std::byte* buffer, int wait_ms);

  // A page in view goes out of it, and stays in memory, so that its next touch is seen. False: not now.
  [[nodiscard]] bool watch(PageNumber page);
  // Tells which of these pages are in view just now. `to` must not call the pager.
  void tell_in_view(PageNumber first, std::uint64_t count, const std::function<void(PageRun)>& to);

  // A write to a guarded page: it may go on, and the page counts as changed.
  void written(PageNumber page);
  // False, and nothing is done, if that could take long.
  [[nodiscard]] bool written_at_once(PageNumber page);
  // Nothing is committed from here; a write to a guarded page is a mistake of the program's: `lost` is called with it.
  // Requires: track_changes.
  void forbid_writes(bool on);

  // ---- commit (pager_commit.cpp). Requires: track_changes; one at a time.
  // What was written before this call returns, and after the last commit, is what the commit will take: from now on
  // it is guarded, and its pages stay in memory until end_commit(). Calls at_cut() when nothing is on its way to the
  // backing. Who writes meanwhile waits. Returns the number of pages.
  std::uint64_t begin_commit(const std::function<void()>& at_cut);
  // Calls take(runs, bytes) for all pages of the commit, each as it was at the cut, outside of the mutex; an error ends
  // it. The runs' pages follow each other in `bytes`. `buffer`: kCommitPages pages.
  static constexpr std::uint32_t kCommitPages = 256;
  using Take = std::function<Status(std::span<const PageRun> runs, const std::byte* bytes)>;
  [[nodiscard]] Status take_commit(std::byte* buffer, const Take& take);
  // Not done: its pages count as changed again.
  void end_commit(bool done);
  [[nodiscard]] bool has_changes() const;
  // Of these pages those stay in the list that differ from what the backing has.
  void keep_changed(std::vector<PageNumber>& pages) const;

  // ---- flush (pager_flush.cpp). Requires: !track_changes.
  // What the program wrote before this call is in the backing when it returns; all stays in memory. (A page whose hash
  // is not known may be written again later; if that fails, as any write that fails, memory keeps it.) Reads the pages
  // that may have been written to since the last one, and writes those that differ; the first call takes all in memory
  // for such. What is found unchanged again and again the evictor guards (FlushList): a write to it is a fault, which
  // written() is told. Called by threads of the program; faults are served meanwhile, but nothing leaves while a batch
  // is written. `buffer`: kFlushPages pages, the caller's own, aligned to the page size.
  static constexpr std::uint32_t kFlushPages = 512;
  [[nodiscard]] Status flush(std::byte* buffer);

  // ---- fork: nothing is on its way and nothing changes between freeze() and thaw(). While eviction is paused, no page
  // is guarded for the sake of flushes: the child's would not be. Not analysed: in between this thread has the mutex,
  // of which its callers know nothing. Whether the budget, asked anew, allows all that is in memory. If not, the
  // evictor is at work.
  [[nodiscard]] bool is_within_limit();
  [[nodiscard]] bool is_making_room();  // pages that are to leave are looked for, or written
  void pause_eviction(bool on);
  void freeze() FARHEAP_NO_THREAD_SAFETY_ANALYSIS;
  void thaw() FARHEAP_NO_THREAD_SAFETY_ANALYSIS;
  // In the child, instead of thaw(): the mutexes are made anew, the parent's threads are not there.
  void thaw_in_child() FARHEAP_NO_THREAD_SAFETY_ANALYSIS;

  // ---- facts
  [[nodiscard]] std::uint64_t resident_pages() const;
  [[nodiscard]] std::uint64_t page_limit() const;
  [[nodiscard]] PageState state(PageNumber page) const;
  // The invariants of the tables; empty if they hold. Slow; for tests. Requires: frozen or quiet.
  [[nodiscard]] std::string check() const;

 private:
  using Lock = base::UniqueLock<base::Mutex>;
  // After so many more pages: lets go of the mutex for a moment if a fault wants it, or it is time.
  void give_way(std::uint32_t& since_break, std::uint32_t pages) FARHEAP_REQUIRES(mutex_);
  Pager(View& view, Backing& backing, Budget& budget, base::RunCounters& counters, PagerOptions options,
        PageTable table, Changes changes);

  // pager_fault.cpp
  // False: somebody was faster.
  [[nodiscard]] bool begin_stored(PageNumber page, bool write, Started& started) FARHEAP_REQUIRES(mutex_);
  void mend(PageNumber page) FARHEAP_REQUIRES(mutex_);
  void caught_up_with_read_ahead(PageNumber page) FARHEAP_REQUIRES(mutex_);
  void touched_in_probation(PageNumber page) FARHEAP_REQUIRES(mutex_);
  void touched_on_its_way_out(PageNumber page) FARHEAP_REQUIRES(mutex_);
  BlockId split_off(BlockId id, PageNumber page, PageRun window) FARHEAP_REQUIRES(mutex_);
  void ask(BlockId id, PageRun window) FARHEAP_REQUIRES(mutex_);
  void rescue(BlockId id, Policy::Proof how) FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] PageRun near_part(PageNumber page, PageRun run) const FARHEAP_REQUIRES(mutex_);
  PageRun fetch_window(PageNumber page, std::uint32_t pages, bool backward) const;
  // Waits until at least one page more may come in; returns how many of `wanted` may.
  std::uint32_t wait_for_room(std::uint32_t wanted) FARHEAP_REQUIRES(mutex_);
  bool keep_hashes(Extent& extent, bool write) FARHEAP_REQUIRES(mutex_);

  // pager_fresh.cpp
  void fill_fresh(PageNumber page) FARHEAP_REQUIRES(mutex_);
  void expect(PageNumber first, PageNumber end) FARHEAP_REQUIRES(mutex_);
  void expect_in(PageRun extent, PageRun part, std::uint64_t of_pages) FARHEAP_REQUIRES(mutex_);
  void fill_expected(PageRun run) FARHEAP_REQUIRES(mutex_);

  // pager_owners.cpp
  void invalidate_in_extent(PageRun run);
  void claim_and_let_write(PageNumber page);

  // pager_commit.cpp
  void let_write(PageNumber page) FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] bool let_write_for_flush(PageNumber page);
  [[nodiscard]] PageRun copy_waiting(PageNumber from, PageNumber end, std::uint32_t most, std::byte* into)
      FARHEAP_REQUIRES(mutex_);

  // pager_flush.cpp
  [[nodiscard]] Status list_pages() FARHEAP_REQUIRES(leaving_view_);
  [[nodiscard]] PageNumber choose_for_flush(PageNumber from, std::byte* buffer) FARHEAP_REQUIRES(leaving_view_);
  [[nodiscard]] Status write_batch(std::byte* buffer) FARHEAP_REQUIRES(leaving_view_);
  void note_flushed(const FlushBatch::Page& one, bool written) FARHEAP_REQUIRES(mutex_);
  void guard_quiet() FARHEAP_EXCLUDES(leaving_view_, mutex_);
  void guard_run(PageRun run) FARHEAP_REQUIRES(leaving_view_, mutex_);

  // pager_incoming.cpp
  void begin_filling(PageRun run, BlockId id) FARHEAP_REQUIRES(mutex_);
  void finish_filling(PageRun run, BlockId id, bool ghost, bool stream) FARHEAP_REQUIRES(mutex_);
  void finish_on_probation(PageRun run, BlockId id) FARHEAP_REQUIRES(mutex_);
  void undo_filling(PageRun run, BlockId id) FARHEAP_REQUIRES(mutex_);
  void begin_incoming(Incoming& incoming) FARHEAP_REQUIRES(mutex_);
  void show(const Incoming& incoming, const std::byte* bytes, bool hash) FARHEAP_EXCLUDES(mutex_);
  void finish_incoming(const Incoming& incoming, bool ghost, bool stream) FARHEAP_REQUIRES(mutex_);
  void undo_incoming(const Incoming& incoming) FARHEAP_REQUIRES(mutex_);

  // pager_evict.cpp
  void take_out_in_passing();
  [[nodiscard]] Evicted note_vain_round(bool is_first) FARHEAP_REQUIRES(mutex_);
  void offer_nothing() FARHEAP_REQUIRES(mutex_);
  // The next victim that is not in use, as far as that is known; 0 when there is none.
  [[nodiscard]] BlockId take_victim() FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] BlockId take_what_order_does_not_know(const ExpectedOrder& order) FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] BlockId with_neighbours(BlockId id) FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] BlockId with_all_in(PageRun window, BlockId id) FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] std::uint64_t probation_target() FARHEAP_REQUIRES(mutex_);
  void join(BlockId one, BlockId whole) FARHEAP_REQUIRES(mutex_);
  void fill_probation(std::uint64_t wanted_pages) FARHEAP_REQUIRES(mutex_) FARHEAP_REQUIRES_SHARED(leaving_view_);
  // Lets go of the mutex meanwhile. Requires: the block is on no list, and this thread has leaving_view_.
  void take_out(BlockId id) FARHEAP_REQUIRES(mutex_) FARHEAP_REQUIRES_SHARED(leaving_view_);
  void forget_gone(PageRun run, const View::Taken* answers) FARHEAP_EXCLUDES(mutex_);
  void note_taken(BlockId id, PageRun run, const View::Taken* answers) FARHEAP_REQUIRES(mutex_);
  void choose_leaving(std::uint64_t pages, Leaving& leaving) FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] bool may_return(const Block& block) const FARHEAP_REQUIRES(mutex_);
  void examine(Leaving& leaving) FARHEAP_EXCLUDES(mutex_);
  void settle(Leaving& leaving, bool written) FARHEAP_REQUIRES(mutex_);
  void sort_out(Leaving& leaving, bool written) FARHEAP_REQUIRES(mutex_);
  void forget_zeros(const Leaving& leaving) FARHEAP_EXCLUDES(mutex_);
  void let_go(Leaving& leaving) FARHEAP_REQUIRES(mutex_);

  // pager_read_ahead.cpp
  struct CarriedOut {
    std::uint32_t used = 0;  // of the buffer, in pages
    std::uint32_t came = 0;  // pages
  };
  CarriedOut carry_out(const ReadAhead::Request& request, std::byte* buffer) FARHEAP_REQUIRES(mutex_);
  enum class Fetched : std::uint8_t { kCame, kNothing, kNoRoom };
  Fetched fetch_ahead(PageRun run, PageRun marker, bool stream, std::byte* buffer) FARHEAP_REQUIRES(mutex_);

  // pager.cpp
  void expect_chosen();
  // Afterwards they are kFresh; or kFilling, and the caller is to end that.
  void discard_in_extent(PageNumber first, PageNumber end, PageState becomes) FARHEAP_REQUIRES(mutex_);
  void drop_from_memory(PageRun run, PageState state, PageState becomes) FARHEAP_REQUIRES(mutex_);
  void note_hint(HintKind kind, PageNumber first, PageNumber end) FARHEAP_REQUIRES(mutex_);
  void keep(PageNumber first, PageNumber end) FARHEAP_REQUIRES(mutex_);
  void keep_no_more(PageNumber first, PageNumber end) FARHEAP_REQUIRES(mutex_);
  // The block has come onto a list.
  void keep_if_said(BlockId id) FARHEAP_REQUIRES(mutex_);
  void put_out(PageNumber first, PageNumber end) FARHEAP_REQUIRES(leaving_view_, mutex_);
  void leave_block(BlockId id, std::uint32_t pages) FARHEAP_REQUIRES(mutex_);
  Status read_patiently(std::span<const Backing::Read> reads);
  Status flush_patiently(std::uint64_t& from);
  Status ask_stored_patiently(PageNumber first, Backing::Stored& stored);
  Status claim_patiently(PageRun run);
  Status write_patiently(std::span<const Backing::Write> writes);

  View& view_;
  Backing& backing_;
  base::RunCounters& counters_;
  base::HeatTable* heat_table_ = nullptr;
  const PagerOptions options_;
  const bool has_owners_;  // pages are claimed before they are written to

  // Shared by those that take pages out of view, from choosing them on; held by who needs that none leaves.
  mutable base::SharedMutex leaving_view_ FARHEAP_ACQUIRED_BEFORE(mutex_);
  mutable base::Mutex mutex_;
  mutable FaultDoor door_;  // to both
  Moving moving_ FARHEAP_GUARDED_BY(mutex_);
  base::Condition freed_;  // memory was freed: who waits for that is not told of every page that comes to rest
  PageTable table_;        // with mutex_; pages and blocks on their way are of those who move them
  Earlier earlier_ FARHEAP_GUARDED_BY(mutex_);
  Changes changes_ FARHEAP_GUARDED_BY(mutex_);
  Cut cut_ FARHEAP_GUARDED_BY(mutex_);
  FlushList flush_list_ FARHEAP_GUARDED_BY(mutex_);  // off until the first flush
  ToldWrites told_writes_;                           // by any thread, without mutex_
  FlushBatch flush_batch_ FARHEAP_GUARDED_BY(leaving_view_);
  Policy policy_ FARHEAP_GUARDED_BY(mutex_);
  PageRanges kept_ FARHEAP_GUARDED_BY(mutex_);
  Probation probation_ FARHEAP_GUARDED_BY(mutex_);
  Around around_ FARHEAP_GUARDED_BY(mutex_);
  Room room_ FARHEAP_GUARDED_BY(mutex_);
  Evictors evictors_;  // changed with mutex_
  ReadAhead read_ahead_ FARHEAP_GUARDED_BY(mutex_);
  WriteWatch write_watch_ FARHEAP_GUARDED_BY(mutex_);
  std::uint64_t owed_by_unknown_ FARHEAP_GUARDED_BY(mutex_) = 0;  // pages, for each victim so far
  std::uint64_t revocations_ FARHEAP_GUARDED_BY(mutex_) = 0;      // each makes void the claims that are under way
  std::atomic<bool> store_is_full_ = false;                       // and the program was told
  std::vector<Leaving> rounds_;                                   // by evictor: its own
};

}  // namespace farheap::pager
