// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which block leaves memory next. A user-space pager sees only misses, so recency comes from elsewhere: a victim
// first goes to probation (out of view, still in memory), and touching it there proves that it is in use; what left
// is remembered for a while by a stamp in the page table (a ghost), and coming back while it is remembered proves
// the same.
//
// Thread-safety: none of its own; the pager's mutex guards it.
#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "base/options.hpp"
#include "pager/page_table.hpp"

namespace farheap::pager {

// A doubly linked list of blocks through Block::older / newer, with a count of pages.
class BlockList {
 public:
  BlockList(PageTable& table, Queue name) : table_(table), name_(name) {}
  void push_newest(BlockId id);
  void push_oldest(BlockId id);
  void remove(BlockId id);
  // Pages left the block while it is in the list.
  void shrink(std::uint32_t pages) { pages_ -= pages; }
  [[nodiscard]] BlockId oldest() const { return oldest_; }
  [[nodiscard]] std::uint64_t pages() const { return pages_; }

 private:
  PageTable& table_;
  Queue name_;
  BlockId oldest_ = 0, newest_ = 0;
  std::uint64_t pages_ = 0;
};

// The policies differ in where a block enters and which list gives the victim:
//
// clock   one list. New and proven blocks enter at its young end, the old end leaves. With probation this is the
//         second-chance algorithm. Simple, and right where the recent past tells the near future. (Proven blocks that
//         go round several times unasked, GCLOCK, were tried: they break sweeps into pieces, lbm 3.0 s instead of 2.3.)
//
// period  the default: clock, and where sweeps come back, Belady's choice as far as it can be foreseen. Of each extent
//         of 2 MiB it is known when a sweep was last seen there and how long after the one before (the period; time
//         is counted in pages that left). The extent whose next sweep is furthest away leaves first, as a whole, so
//         that requests stay large; but not one that a sweep may still be in. Blocks of the other extents leave as
//         under clock, and when half a round of theirs is shorter than that distance, those of the extents leave. So
//         what was in view all the time stays, and the rest of a sweep passes by. What is in view is swept unseen: so
//         the clock's hand, when it spares a block for its period, takes one page of its extent out of view, whose
//         next touch tells. An extent where nobody came for one and a half periods is like any other, so a pattern
//         that ended is forgotten after that time. Of these others, too, a page leaves view, once while memory is
//         turned over, and stays in memory. Where nobody touches it for longer than sweeps usually take to come back,
//         the extent is taken to be needed after as long again: what is cold leaves before what is swept. The clock has
//         three hands: small blocks that were touched in probation, by themselves, are a generation of their own, and
//         those to whom that happened more than once another. Of each it is counted how many of its latest victims were
//         touched again. A page is the less likely to be taken, the more those were, but never less than a hundredth as
//         likely as where none is: so what is used all the time is seldom asked, and what is used no more leaves all
//         the same. (A list cannot know how often what is in view is used; VMS's second segment and the generations of
//         Linux's MGLRU ask by age alone.) What a loop says of itself (Loops) needs not be found out: when it will be
//         where, and, the second time, after how long it comes back. Where it has been it is not any more, so that this
//         need not be waited for either.
//
// s3fifo  three lists. New blocks enter a small one (a tenth of memory); only those that were proven, in probation
//         or as ghosts, enter the main one: that is S3-FIFO ("FIFO queues are all you need for cache eviction",
//         SOSP'23). Blocks that a recognised stream brings in enter a list of their own, which gives the victims as
//         long as it holds more than its share of memory, a tenth: a sweep passes through it and leaves the rest alone,
//         and a sweep larger than memory that comes round again finds most of the rest where it was, instead of
//         nothing. So that neither side is there for ever, one stream block in sixteen goes to the main list, and one
//         victim in sixteen comes from there (bimodal insertion, ISCA'07).
using PolicyKind = base::EvictionPolicy;

class Policy {
 public:
  Policy(PolicyKind kind, PageTable& table)
      : kind_(kind),
        table_(table),
        small_(table, Queue::kSmallOrWarm),
        main_(table, Queue::kMain),
        warm_(table, Queue::kSmallOrWarm),
        hot_(table, Queue::kStreamOrHot),
        stream_(table, Queue::kStreamOrHot),
        keep_(table, Queue::kKeep),
        refused_(table, Queue::kRefused),
        planned_(table, Queue::kPlanned) {}

  // The block came into memory; `ghost`: it had left not long ago; `stream`: a stream brought it.
  void entered(BlockId id, bool ghost, bool stream);
  // An order (expected_order.hpp) says when the block leaves, until it is taken back. Whatever else is to leave is
  // chosen among the rest, as if there were no more. Requires: it is on a list.
  void leave_to_order(BlockId id);
  // Some of those that were in memory longest. Called before each victim where no order is followed.
  void take_back_from_order();
  // The block was touched in probation: by itself, by a sweep, or because it is what watches for a use of its extent.
  enum class Proof { kItself, kSweep, kWatched };
  void proven(BlockId id, Proof how = Proof::kItself);
  // The block is one page that is out of view only so that the next use of its extent is seen. It leaves after the
  // rest.
  [[nodiscard]] bool watches(BlockId id) const;
  // It has left: nobody touched it in probation.
  void gone(const Block& block) { note_fate(block.proofs, false); }
  // A sweep was seen here.
  void swept(PageNumber page, std::uint64_t memory_pages);
  // A page was touched out of view, whoever did it: where sweeps come by, it was probably one.
  void touched(PageNumber page, std::uint64_t memory_pages);
  // A sweep will come to this extent when about `after` more pages have left. `period`: how long after the time before;
  // 0: not known, and what was seen holds, or else `guess` does.
  void foresee(PageNumber page, std::uint32_t after, std::uint32_t period, std::uint32_t guess,
               std::uint64_t memory_pages);
  // The sweep that was seen in this extent is not there any more.
  void passed(PageNumber page);
  // The user says: evict last. What is kept has at most half of memory, so that there is always room for the rest: with
  // more, it stays where it is. Nothing is done for what is on no list.
  void keep(BlockId id, std::uint64_t memory_pages);
  void keep_no_more(BlockId id);
  [[nodiscard]] std::uint64_t kept_pages() const { return keep_.pages(); }
  [[nodiscard]] static std::uint64_t keep_share(std::uint64_t memory_pages) { return memory_pages / 2; }
  // Where there is less memory than there was, some of what is kept beyond its share is not kept any more: first what
  // has been longest. Called before each victim.
  void keep_to_share(std::uint64_t memory_pages);
  // The kernel did not let go of it; it is tried again after all others.
  void refused(BlockId id) { refused_.push_newest(id); }
  // The user is done with it. Requires: it is on a list.
  void leaves_next(BlockId id);
  // One of those, taken off its list; 0 when there is none.
  [[nodiscard]] BlockId take_done_with();
  // The next to leave, taken off its list; 0 when there is none. `memory_pages`: all the pages there is room for.
  [[nodiscard]] BlockId take_victim(std::uint64_t memory_pages);
  // The same, of what is not kept and was not refused.
  [[nodiscard]] BlockId take_usual_victim(std::uint64_t memory_pages);
  [[nodiscard]] static std::uint64_t stream_share(std::uint64_t memory_pages) { return memory_pages / 10; }
  // How many of the latest victims were chosen because a sweep will need them last, not because they were old.
  [[nodiscard]] std::uint64_t foreseen_percent() const {
    return victim_pages_ == 0 ? 0 : foreseen_pages_ * 100 / victim_pages_;
  }
  // Whether the block could be the next victim.
  [[nodiscard]] bool may_take(BlockId id) {
    const BlockList* const list = list_of(id);
    return list != nullptr && list != &keep_ && list != &refused_;
  }
  // Off its list, wherever that is (not probation).
  void remove(BlockId id);
  void shrink(BlockId id, std::uint32_t pages);
  // The page as a block of its own, on no list. Requires: it is in view, and not all of the block, which is on a list.
  [[nodiscard]] BlockId split_page(BlockId id, PageNumber page);
  [[nodiscard]] std::uint64_t pages() const {
    return small_.pages() + used_pages() + stream_.pages() + keep_.pages() + refused_.pages() + planned_.pages();
  }

  // Ghosts: a page that left gets the present stamp as its tag; it is remembered until as many pages as memory
  // holds have left after it.
  [[nodiscard]] std::uint32_t stamp() { return ++left_; }
  [[nodiscard]] std::uint32_t left() const { return left_; }
  [[nodiscard]] bool is_ghost(std::uint32_t stamp, std::uint64_t memory_pages) const {
    return stamp != 0 && left_ - stamp < memory_pages;
  }

 private:
  [[nodiscard]] BlockList* list_of(BlockId id);
  [[nodiscard]] std::uint64_t used_pages() const { return main_.pages() + warm_.pages() + hot_.pages(); }
  static constexpr unsigned kGenerations = 3;
  [[nodiscard]] BlockList& generation(unsigned proofs) { return proofs == 0 ? main_ : proofs == 1 ? warm_ : hot_; }
  void note_fate(unsigned proofs, bool proven);
  [[nodiscard]] BlockId take_by_proofs();
  [[nodiscard]] BlockId take_proven_in_passing(std::uint64_t memory_pages);
  [[nodiscard]] BlockId take_oldest(BlockList& list);
  [[nodiscard]] BlockId take_by_period(std::uint64_t memory_pages);

  // kPeriod
  struct Ranked {
    std::uint32_t distance;  // to the next sweep, in pages that leave
    PageNumber first;        // of the extent
    [[nodiscard]] auto operator<=>(const Ranked&) const = default;
  };
  void rank(std::uint64_t memory_pages);
  void list(PageNumber page);
  [[nodiscard]] bool is_over(const Extent& extent, std::uint64_t memory_pages) const;
  [[nodiscard]] bool is_watched(Extent& extent);
  [[nodiscard]] BlockId watch(Extent& extent, BlockId id);
  [[nodiscard]] BlockId take_to_watch();
  [[nodiscard]] std::uint32_t distance_to(const Extent& extent) const;
  [[nodiscard]] BlockId take_latest_needed();
  [[nodiscard]] BlockId take_by_clock();
  [[nodiscard]] BlockId block_in_extent(PageNumber first) const;

  PolicyKind kind_;
  PageTable& table_;
  BlockList small_, main_, warm_, hot_, stream_, keep_, refused_, planned_;
  struct Generation {
    double dies = 1;  // of its victims, so many are not touched in probation; lately
    double turn = 0;  // whose is the largest gives the next victim
  };
  std::array<Generation, kGenerations> generations_;
  std::uint64_t asked_ = 0;                        // pages foreseen times pages proven, since one of those was asked
  std::uint32_t stream_blocks_ = 0, victims_ = 0;  // counted for the one in sixteen
  std::uint32_t left_ = 1;                         // never 0: that is "not at all"
  std::vector<PageNumber> extents_;                // first pages of those that have a period, or much in view
  std::vector<PageNumber> to_watch_;               // of them, those of which a page is to leave view
  std::vector<Ranked> ranked_;                     // of them, those with something to take; the last is needed last
  std::uint64_t foreseen_in_view_ = 0;             // pages of extents of which something is known, when last ranked
  std::uint64_t foreseen_pages_ = 0, victim_pages_ = 0;  // that left, halved at each ranking
  std::uint32_t ranked_at_ = 0, rankings_ = 0;
  bool sparing_ = true;  // until the next ranking; not if everything would be spared
};

}  // namespace farheap::pager
