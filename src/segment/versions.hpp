// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The versions of a kept segment: which pages it holds, where they rest, and how that becomes a version that lasts.
//
//   write()     pages go to slots that no version refers to; so whatever happens, the last commit stands
//   commit()    the changed part of the map is written, then a superblock is replaced by compare-and-swap
//   snapshot()  a commit with a name: its map is kept
//
// The cost of a commit follows what has changed. Nothing is replayed at open, which reads the superblocks; maps
// are read as pages are asked for.
//
// The source of the bookkeeping by epochs and dead lists: Bonwick and others, "The Zettabyte File System", and the
// account of ZFS' deadlists in its sources' comments; see slot_ref.hpp for the rule.
//
// Thread-safety: any thread. One process at a time writes. Reads do not wait for a write or a commit that is on its
// way to the store.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/mutex.hpp"
#include "farheap/store.hpp"
#include "pager/view.hpp"
#include "segment/fresh_pages.hpp"
#include "segment/slot_list.hpp"
#include "segment/slot_space.hpp"
#include "segment/superblock.hpp"
#include "segment/version_leases.hpp"

namespace farheap::segment {

// A record of 256 bytes in the table of snapshots.
struct Snapshot {
  static constexpr std::size_t kLongestName = 95;
  char name[kLongestName + 1];  // ended by a zero
  std::uint64_t commit;
  std::uint64_t time_ns;  // since 1970
  std::uint64_t epoch;    // its own and all slots before it have at most this one
  std::uint64_t pages;
  BlockTree::Root map;
  SlotList::Root dead;  // what the snapshot before refers to, and this one does not
  std::uint64_t spare[9];
};
static_assert(sizeof(Snapshot) == 256 && std::is_trivially_copyable_v<Snapshot>);

class Versions {
 public:
  using Page = pager::PageNumber;
  static constexpr std::uint64_t kPagesPerLeaf = std::tuple_size_v<BlockWords>;

  struct Settings {
    std::uint64_t base_address = 0;
    std::uint64_t capacity_pages = 0;
  };
  // Makes an empty one, committed. kConflict if there is one in the store. The store has blocks of a page; it and the
  // leases outlive this. Without leases nobody may read beside this writer.
  [[nodiscard]] static Result<std::unique_ptr<Versions>> create(Store& store, const Settings& settings,
                                                                VersionLeases* leases = nullptr);
  // At the last commit, to write. kNotFound, kCorrupt, kUnavailable: as read_superblock().
  [[nodiscard]] static Result<std::unique_ptr<Versions>> open(Store& store, VersionLeases* leases = nullptr);
  // At the newest commit, with a lease on it: to read, beside a writer or not. kUnavailable if the writer commits
  // faster than this can follow.
  [[nodiscard]] static Result<std::unique_ptr<Versions>> open_to_read(Store& store, VersionLeases& leases);
  // As that superblock says, whether it is one of the store's or not: to look at. Requires: nobody writes.
  [[nodiscard]] static std::unique_ptr<Versions> at(Store& store, const Superblock& content);
  ~Versions();

  // Pages that were never written read as zeros.
  [[nodiscard]] Status read(std::span<const pager::Backing::Read> runs);
  // On error each page has what it had before or what was written: write it again. Whoever keeps the pages (kKeeps)
  // writes them again if the commit that follows fails; the others are told by a checksum if the store loses them.
  enum class Writer { kForgets, kKeeps };
  [[nodiscard]] Status write(std::span<const pager::Backing::Write> runs, Writer writer = Writer::kForgets);
  // They read as zeros from now on.
  [[nodiscard]] Status forget(Page first, std::uint64_t count);

  // What was written and forgotten until now becomes the newest version. On error it does not, or (a store that does
  // not answer) it may have; what is written stays readable, and a later commit takes it in. That holds after a sync
  // that failed, too: what was written since the last good one is then written again first, because a store may have
  // lost it without another word. kCorrupt, and nothing is committed any more, if it has lost pages that are nowhere
  // else; then reading these is kCorrupt, too.
  [[nodiscard]] Status commit();
  // The same, and it is kept under a name. kConflict if there is one of that name; kInvalidArgument for a name that is
  // empty or too long.
  [[nodiscard]] Status snapshot(std::string_view name);
  // kNotFound. A commit.
  [[nodiscard]] Status remove(std::string_view name);
  // Back to the snapshot of that name, or to the newest one; all that came after it is lost, newer snapshots too. One
  // commit. kNotFound if there is none.
  [[nodiscard]] Status roll_back(std::string_view name = {});

  // ---- the cleaner (versions_gather.cpp)
  // Has the store let go of what was written by commits that never came to be, of this process or a former one.
  [[nodiscard]] Status trim();
  // The leaves of the last commit's map, by number, whose pages lie scattered in the store. Reads the whole map.
  [[nodiscard]] Result<std::vector<std::uint64_t>> scattered_leaves();
  // Brings the pages of one together, if they are scattered and there is a better place; returns how many were moved,
  // which becomes lasting with the next commit. What snapshots share with the newest version they share no longer.
  // `buffer`: kPagesPerLeaf pages, aligned to one.
  [[nodiscard]] Result<std::uint64_t> gather(std::uint64_t leaf, std::byte* buffer);
  // The same for one of the leaves in which pages were written since the segment was opened; pages that a snapshot has,
  // too, stay shared. False: there is none left to look at.
  [[nodiscard]] Result<bool> gather_one_of_lately(std::byte* buffer);

  // Pages as a snapshot has them. Requires: it is not removed meanwhile.
  [[nodiscard]] Status read(const Snapshot& snapshot, std::span<const pager::Backing::Read> runs);

  // Which of the pages [first, first + 512) it holds, or the snapshot does, if there is one. Requires: first is a
  // multiple of 512.
  [[nodiscard]] Result<pager::Backing::Stored> stored_from(const Snapshot* snapshot, Page first);

  [[nodiscard]] Superblock last_commit() const;
  // By age.
  [[nodiscard]] Result<std::vector<Snapshot>> snapshots();

  // Reads all books of the last commit, and compares what they refer to with what is written down as taken. kCorrupt
  // with the first thing that is wrong. With `data` it reads all pages, too, of all versions, and what the store says
  // of them counts. `progress` hears how many slots it has read. Requires: nothing was written since the last commit.
  using CheckProgress = std::function<void(std::uint64_t slots)>;
  [[nodiscard]] Status check(bool data = false, const CheckProgress& progress = {});

 private:
  struct Attempt;
  class BookSlots;
  class PageSlots;
  Versions(Store& store, VersionLeases* leases, const Superblock& content,
           const std::array<Version, kSuperblocks>& versions);

  // A page that is being written: where it is, and where it goes.
  struct Placed {
    Page page;
    const std::byte* bytes;
    FreshPages::Sum sum;
    SlotRef from, to;
  };
  // What may still arrive from somebody, this process too, has become more.
  void raise_fence() FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] Status take_slots(std::vector<Placed>& pages) FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] Status put_pages(const std::vector<Placed>& pages);
  // Requires: they have just been read.
  [[nodiscard]] Status check_doubtful(std::span<const Placed> pages) const;
  [[nodiscard]] Result<std::uint64_t> gather_leaf(std::uint64_t leaf, std::byte* buffer) FARHEAP_REQUIRES(writing_);
  [[nodiscard]] Status note(Page page, SlotRef at, FreshPages::Sum sum) FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] Status note(std::span<const Placed> pages) FARHEAP_REQUIRES(mutex_);
  void give_back(std::span<const Placed> pages) FARHEAP_REQUIRES(mutex_);

  // versions_commit.cpp
  // Whoever writes has writing_; mutex_ is let go of while the store is at work, but not while books are read.
  [[nodiscard]] Status commit_changes() FARHEAP_REQUIRES(writing_, mutex_);
  [[nodiscard]] Status commit(Attempt& attempt) FARHEAP_REQUIRES(writing_, mutex_);
  [[nodiscard]] SlotList& dead_after(Attempt& attempt) FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] Status place_and_seal(Attempt& attempt) FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] Status place_space(Attempt& attempt) FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] Status put_books(Attempt& attempt);
  [[nodiscard]] Status give_up(Attempt& attempt, Status why) FARHEAP_REQUIRES(mutex_);
  // Returns what has become free by it.
  [[nodiscard]] std::vector<SlotSpace::Run> finish(Attempt& attempt, std::uint64_t oldest_read)
      FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] std::uint64_t oldest_read();
  [[nodiscard]] std::uint64_t next_commit() const FARHEAP_REQUIRES(mutex_);
  // Before the first write of an opening, where another state than the one before what was opened may be found later:
  // a commit of what was opened. On error nothing may be written.
  [[nodiscard]] Status settle() FARHEAP_REQUIRES(writing_, mutex_);
  // What was in doubt is in the store again, if it can be had.
  [[nodiscard]] Status write_doubtful_again() FARHEAP_REQUIRES(writing_, mutex_);
  [[nodiscard]] Status rewrite(std::span<Placed> pages, std::byte* buffer);

  // versions_snapshots.cpp
  [[nodiscard]] Status load_snapshots() FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] Status store_snapshots(const std::vector<Snapshot>& snapshots) FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] Status retire(SlotRef old) FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] Status forget_list(const SlotList::Root& list) FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] Status join_lists(const Snapshot& removed, const SlotList::Root& next, const Snapshot* before,
                                  SlotList& joined) FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] Status release_newer_than(std::uint64_t epoch) FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] Status release_dead_newer_than(std::uint64_t epoch, const SlotList::Root& root)
      FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] Status read_by(const Snapshot* snapshot, std::span<const pager::Backing::Read> runs);
  [[nodiscard]] BlockTree& map_of(const Snapshot* snapshot) FARHEAP_REQUIRES(mutex_);

  Store& store_;
  VersionLeases* const leases_;
  const std::uint64_t writer_;
  base::Mutex writing_ FARHEAP_ACQUIRED_BEFORE(mutex_);  // held by who changes anything, until that is settled
  // Only who has writing_ changes more than what is kept of trees.
  mutable base::Mutex mutex_;
  Superblock content_ FARHEAP_GUARDED_BY(mutex_);  // of the last commit
  // The number of the last commit that may have become one without telling: no other commit gets it, for a reader may
  // have a lease on it. 0: none.
  std::uint64_t doubtful_commit_ FARHEAP_GUARDED_BY(mutex_) = 0;
  std::array<Version, kSuperblocks> versions_ FARHEAP_GUARDED_BY(writing_);
  bool is_settled_ FARHEAP_GUARDED_BY(mutex_) = false;  // it was tried, or there was a commit
  // At the end of the store may be slots of a commit that failed, and that a power loss would bring back.
  bool has_doubtful_end_ FARHEAP_GUARDED_BY(mutex_) = false;
  BlockTree map_ FARHEAP_GUARDED_BY(mutex_);
  SlotSpace space_ FARHEAP_GUARDED_BY(mutex_);
  SlotList dead_ FARHEAP_GUARDED_BY(mutex_);
  BlockTree snapshot_table_ FARHEAP_GUARDED_BY(mutex_);
  bool snapshots_loaded_ FARHEAP_GUARDED_BY(mutex_) = false;
  std::vector<Snapshot> snapshots_ FARHEAP_GUARDED_BY(mutex_);
  // That pages were read of, by commit.
  std::unordered_map<std::uint64_t, BlockTree> snapshot_maps_ FARHEAP_GUARDED_BY(mutex_);
  std::uint64_t epoch_ FARHEAP_GUARDED_BY(mutex_);
  std::uint64_t pages_ FARHEAP_GUARDED_BY(mutex_);
  std::vector<SlotRef> newly_dead_ FARHEAP_GUARDED_BY(mutex_);  // not in dead_ yet
  FreshPages fresh_ FARHEAP_GUARDED_BY(mutex_);
  // Leaves that the cleaner has not looked at.
  std::unordered_set<std::uint64_t> written_lately_ FARHEAP_GUARDED_BY(mutex_);
};

}  // namespace farheap::segment
