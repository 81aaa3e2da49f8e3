// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The compressed tier: pages that left memory not long ago, packed, in memory, before the store. A touch of one is a
// fault without I/O; two or three have room where one had it. It stands between the pager and the backing whose pages
// these are. What it takes is a part of the budget, as all that a process has; how much, TierShare decides.
//
// The invariant: a page's bytes are where index_ says: in the entry that it names, or else in the backing below. An
// entry goes only when its page was read, written anew or forgotten, or when the backing has acknowledged it. A page
// that was read is not here any more (where() says so before).
//
// What does not shrink goes past it. So does what a sweep leaves behind (Write::soon is not set): that is read
// in large pieces, and unpacking would take longer.
//
// Packing is LZ4's. zstd's level 1 packs to about half of that size, but takes three times as long, and three to six
// times for unpacking, for which the program waits (docs/benchmarks/programs.md).
//
// Thread-safety: as pager::Backing.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.hpp"
#include "base/thread_safety.hpp"
#include "base/units.hpp"
#include "os/mapping.hpp"
#include "pager/budget.hpp"
#include "pager/view.hpp"
#include "segment/span_pool.hpp"
#include "segment/tier_share.hpp"

namespace farheap::segment {

class Tier final : public pager::Backing {
 public:
  struct Room {
    std::uint64_t capacity_pages = 0;  // of the segment
    std::uint64_t most_bytes = 0;      // of memory that it may ever take
    std::uint64_t least_pages = 0;     // with no more memory than that for pages, it takes none
  };
  // Called with runs that were written below of what came with Write::soon; the pager counts the rest.
  using Written = std::function<void(pager::PageRun)>;
  // What it stands before outlives it. kUnavailable if the build has no codec for it, kNoSpace without addresses.
  [[nodiscard]] static Result<std::unique_ptr<Tier>> make(pager::Backing& below, pager::Budget& budget, Room room,
                                                          Written written);

  [[nodiscard]] Status read(std::span<const Read> runs) override;
  [[nodiscard]] Status write(std::span<const Write> runs) override;
  void offer(std::span<const Write> runs) override;
  void forget(pager::PageRun run) override;
  [[nodiscard]] const std::byte* at_rest(pager::PageRun run) override;
  [[nodiscard]] Rest where(pager::PageRun run) const override;
  [[nodiscard]] std::unique_ptr<Reads> reads_in_flight(unsigned most) override;
  // What only it has is written, and stays here, too. Until the end all that comes goes past.
  void begin_flush() override { ++flushes_; }
  [[nodiscard]] Status flush_some(std::uint64_t& from) override;
  void end_flush() override { --flushes_; }
  // A page that only the tier has does not count: the backing below does not hold it.
  [[nodiscard]] Result<Stored> stored_from(pager::PageNumber first) override { return below_.stored_from(first); }
  void invalidate(pager::PageRun run) override;
  [[nodiscard]] bool has_owners() const override { return below_.has_owners(); }
  [[nodiscard]] Status claim(pager::PageRun run) override { return below_.claim(run); }

  // The budget of the pager before it: tells the tier how much memory there is.
  [[nodiscard]] pager::Budget& budget() { return tier_budget_; }
  // Around fork(): in between nothing is on its way.
  void lock_for_fork() FARHEAP_ACQUIRE(writing_, mutex_);
  void unlock_in_parent() FARHEAP_RELEASE(writing_, mutex_);
  void unlock_in_child() FARHEAP_RELEASE(writing_, mutex_);

  struct Facts {
    std::uint64_t pages;         // packed
    std::uint64_t held_bytes;    // of memory
    std::uint64_t wanted_bytes;  // that it may take now
  };
  [[nodiscard]] Facts facts() const;
  // The invariants of the tables; empty if they hold. For tests. Requires: nothing is on its way.
  [[nodiscard]] std::string check() const;

 private:
  using EntryId = std::uint32_t;  // 0: none
  struct Entry {
    pager::PageNumber page = 0;
    SpanPool::Place place = 0;
    std::uint32_t stamp = 0;  // TierShare's, of when it left memory
    std::uint16_t bytes = 0;
    bool reading = false;          // it is being unpacked for who wants it: it stays until that is done
    bool leaving = false;          // it is being written below, and stays until that is done
    bool dead = false;             // ... and was read or forgotten meanwhile: its word is kBusy
    bool forgotten = false;        // ... and is to be forgotten below, too
    EntryId older = 0, newer = 0;  // in the queue; of free ones: the next
  };
  // What index_ has of a page: nothing; an entry, with kBelow if the backing has the same; or, with kGone, the stamp of
  // when it left memory, of pages that are not here any more. kBusy: it was read, or forgotten, while its entry is
  // being written below, where nothing may be done with it until that has ended.
  using Word = std::uint32_t;
  static constexpr Word kGone = Word{1} << 31, kBelow = Word{1} << 30, kBusy = kGone;  // no stamp is 0
  static constexpr EntryId kMostEntries = kBelow - 1;
  static constexpr std::size_t kBackPages = 64;  // written below in one go

  class TierBudget final : public pager::Budget {
   public:
    TierBudget(Tier& tier, pager::Budget& inner) : tier_(tier), inner_(inner) {}
    [[nodiscard]] std::uint64_t page_limit(std::uint64_t resident_pages, std::uint64_t coming_pages) override;

   private:
    Tier& tier_;
    pager::Budget& inner_;
  };
  class InFlight;

  Tier(pager::Backing& below, pager::Budget& budget, Written written, std::uint64_t least_pages, SpanPool pool,
       os::ReservedArray<std::atomic<Word>> index, os::ReservedArray<Entry> entries, os::Mapping buffer);

  [[nodiscard]] static bool is_entry(Word word) { return word != 0 && (word & kGone) == 0; }
  [[nodiscard]] static EntryId entry_of(Word word) { return word & ~kBelow; }
  [[nodiscard]] Word word_of(pager::PageNumber page) const { return index_[page].load(std::memory_order_acquire); }
  void set_word(pager::PageNumber page, Word word) { index_[page].store(word, std::memory_order_release); }

  // Packed bytes become the page's entry. False: there is no room for them.
  [[nodiscard]] bool put(pager::PageNumber page, std::span<const std::byte> packed, bool is_below)
      FARHEAP_REQUIRES(mutex_);
  void remove(pager::PageNumber page) FARHEAP_REQUIRES(mutex_);
  void went_past(pager::PageNumber page, bool could_be_here) FARHEAP_REQUIRES(mutex_);
  // Whether it is being written below; then it is to be forgotten there afterwards.
  [[nodiscard]] bool is_leaving(pager::PageNumber page) FARHEAP_REQUIRES(mutex_);
  // The page, if it is here, is the newest again.
  [[nodiscard]] bool renew(pager::PageNumber page) FARHEAP_EXCLUDES(mutex_);
  void release(EntryId id) FARHEAP_REQUIRES(mutex_);
  void push_newest(EntryId id) FARHEAP_REQUIRES(mutex_);
  void unlink(EntryId id) FARHEAP_REQUIRES(mutex_);
  // A page is read, alone or as one of few: from here, or from below.
  void note_touch(Word word) FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] std::uint64_t wanted_bytes() const FARHEAP_REQUIRES(mutex_) {
    return share_.pages() * base::kPageBytes;
  }
  [[nodiscard]] std::size_t choose_oldest() FARHEAP_REQUIRES(writing_, mutex_);
  void choose_to_keep(EntryId& from) FARHEAP_REQUIRES(writing_, mutex_);
  void choose(EntryId id) FARHEAP_REQUIRES(writing_, mutex_);
  void settle_back(bool written, bool to_keep) FARHEAP_REQUIRES(mutex_);

  [[nodiscard]] std::span<const std::byte> pack(const std::byte* page) FARHEAP_REQUIRES(writing_)
      FARHEAP_EXCLUDES(mutex_);
  // Packs the page. False: it is to go past.
  [[nodiscard]] bool take(pager::PageNumber page, const std::byte* bytes, bool is_below) FARHEAP_REQUIRES(writing_)
      FARHEAP_EXCLUDES(mutex_);
  [[nodiscard]] Status make_room(std::size_t bytes) FARHEAP_REQUIRES(writing_) FARHEAP_EXCLUDES(mutex_);
  // They leave when they are written, or stay, too.
  [[nodiscard]] Status write_chosen(bool to_keep) FARHEAP_REQUIRES(writing_) FARHEAP_EXCLUDES(mutex_);

  [[nodiscard]] Status unpack(EntryId id, std::byte* into) const;
  [[nodiscard]] Status read_mixed(std::span<const Read> runs);

  pager::Backing& below_;
  const Written written_;
  const std::uint64_t least_pages_;
  TierBudget tier_budget_;

  // Held by who packs, and by who writes below what was packed, from choosing on: of two writes of a page the later one
  // wins. What goes past is written without: no entry has it then, and its page is of who writes it (the pager).
  base::Mutex writing_;
  // A page to pack into, and kBackPages to unpack into.
  os::Mapping buffer_ FARHEAP_GUARDED_BY(writing_);
  std::vector<Write> back_ FARHEAP_GUARDED_BY(writing_);
  std::atomic<unsigned> flushes_ = 0;                 // under way
  bool is_open_ FARHEAP_GUARDED_BY(writing_) = true;  // it may have some memory now
  // Pages that did not shrink, lately, and were not tried.
  std::uint32_t vain_ FARHEAP_GUARDED_BY(writing_) = 0;
  std::uint32_t skipped_ FARHEAP_GUARDED_BY(writing_) = 0;

  mutable base::Mutex mutex_;                   // after writing_
  os::ReservedArray<std::atomic<Word>> index_;  // by page; changed with mutex_, read without
  // Changed with mutex_; who has marked an entry (reading, leaving) reads it without, and what is in its place.
  os::ReservedArray<Entry> entries_;
  SpanPool pool_;
  std::vector<EntryId> leaving_;  // of the write below that is under way: changed with both
  EntryId entries_made_ FARHEAP_GUARDED_BY(mutex_) = 0;
  EntryId free_entries_ FARHEAP_GUARDED_BY(mutex_) = 0;
  EntryId oldest_ FARHEAP_GUARDED_BY(mutex_) = 0;
  EntryId newest_ FARHEAP_GUARDED_BY(mutex_) = 0;
  std::uint64_t pages_ FARHEAP_GUARDED_BY(mutex_) = 0;  // entries
  TierShare share_ FARHEAP_GUARDED_BY(mutex_);
  std::uint32_t readers_ FARHEAP_GUARDED_BY(mutex_) = 0;  // that unpack: what they read does not move
};

}  // namespace farheap::segment
