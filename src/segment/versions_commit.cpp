// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How what is in memory becomes the newest version. The books are placed in an order in which each can write down
// where the one before went: the map, dead lists, the table of snapshots, the map of free space (which has to name its
// own blocks, so it is placed until nothing changes any more). All go to the store, are made durable, and then the
// superblock follows, which is the commit.
//
// The invariant: until a superblock was sent nothing refers to what an attempt wrote, and its slots are free at once if
// it fails. After that it may have become the last commit without telling; so none of its slots is used for anything
// else before another commit is safe.
//
// A sync that failed may have lost what was written before it, and the next one would not say so. All that a commit
// brings is therefore in the store twice then: books are written anew in any case, pages by write_doubtful_again().
// What lies below the last commit was made durable by a sync that succeeded.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "segment/slot_io.hpp"
#include "segment/versions_attempt.hpp"
#include "store/aligned_buffer.hpp"

namespace farheap::segment {
namespace {

std::uint64_t now_ns() { return static_cast<std::uint64_t>(base::kernel_time(CLOCK_REALTIME).count()); }

}  // namespace

// For books that belong to the newest state only.
class Versions::BookSlots : public SlotSource {
 public:
  BookSlots(Versions& versions, Attempt& attempt) : versions_(versions), attempt_(attempt) {}
  Result<SlotRef> take() override {
    versions_.mutex_.assume_held();  // by who places a tree
    auto run = versions_.space_.take(1);
    if (!run) return fail(std::move(run.error()));
    attempt_.taken.push_back(run->first);
    return SlotRef(run->first, attempt_.epoch);
  }
  Status replaced(SlotRef old) override {
    versions_.mutex_.assume_held();
    return versions_.space_.release(old.slot());
  }

 protected:
  Versions& versions_;
  Attempt& attempt_;
};

// For the map, which snapshots share.
class Versions::PageSlots final : public BookSlots {
 public:
  using BookSlots::BookSlots;
  Status replaced(SlotRef old) override {
    versions_.mutex_.assume_held();
    return versions_.retire(old);
  }
};

Status Versions::commit() {
  base::LockGuard writing(writing_);
  base::LockGuard lock(mutex_);
  return commit_changes();
}

Status Versions::commit_changes() {
  const bool is_there = !map_.has_changed() && newly_dead_.empty();
  // What was tried since and failed must not come back after this one has answered.
  const bool may_another_come = doubtful_commit_ > content_.commit || (has_doubtful_end_ && !is_settled_);
  if (is_there && !may_another_come) return {};
  if (Status status = load_snapshots(); !status) return status;
  Attempt attempt(*this);
  return commit(attempt);
}

// Trees that are sealed do not change before they are finished, so their blocks can be written without the mutex.
Status Versions::commit(Attempt& attempt) {
  Status status = settle();
  raise_fence();
  if (status) status = write_doubtful_again();
  if (status) status = place_and_seal(attempt);
  std::uint64_t oldest = 0;
  {
    const base::Without unlocked(mutex_);
    if (status) status = put_books(attempt);
    if (status) {
      status = store_.sync();
      attempt.sync_has_failed = !status;
    }
    if (status) {
      attempt.superblock_was_tried = true;
      status = write_superblock(store_, attempt.content, versions_);
    }
    if (status) oldest = oldest_read();
  }
  if (!status) return give_up(attempt, std::move(status));
  const std::vector<SlotSpace::Run> freed = finish(attempt, oldest);
  const base::Without unlocked(mutex_);
  for (const SlotSpace::Run run : freed) {
    if (run.count < kLeastHole) continue;
    if (Status erased = store_.erase(run.first, run.count); !erased) {
      base::log(base::LogLevel::kWarn, "{}", erased.error().message());  // space is lost, no data
    }
  }
  return {};
}

// The superblock of two commits ago is written over, whatever the number: the next one of the same parity.
std::uint64_t Versions::next_commit() const {
  return doubtful_commit_ > content_.commit ? doubtful_commit_ + 2 : content_.commit + 1;
}

// What the older superblock leads to may be in slots that the newer state calls free, and there is no telling which. So
// it is written over, as any commit does; only that this one says what the last one said, time included. If that fails,
// the store grows as if nothing were free, and the next commit tells why.
//
// Where the other superblock is not that of the commit before, a commit may have failed there that could not be made
// durable, and neither could its removal: after a power loss it would be found, and its slots lie where the store
// grows. Then nothing is written before it is gone.
//
// The last commit may be one of a process that was killed before it was durable. It has to be, before the other one is
// written over.
Status Versions::settle() {
  if (is_settled_ || !(space_.is_waiting() || has_doubtful_end_)) return {};
  is_settled_ = !has_doubtful_end_;
  Superblock same = content_;
  same.writer = writer_;
  same.commit = next_commit();
  Status status;
  bool sync_has_failed = false;
  std::uint64_t oldest = 0;
  {
    const base::Without unlocked(mutex_);
    status = store_.sync();
    sync_has_failed = !status;
    if (status) status = write_superblock(store_, same, versions_);
    if (status) oldest = oldest_read();
  }
  if (sync_has_failed) fresh_.doubt();  // what was written before there were free slots
  if (!status) {
    doubtful_commit_ = same.commit;
    if (has_doubtful_end_) return status;
    base::log(base::LogLevel::kInfo, "free space is not used before the next commit: {}", status.error().message());
    return {};
  }
  is_settled_ = true;
  content_ = same;
  space_.settle(oldest);
  return {};
}

// In place: no commit refers to their slots.
Status Versions::write_doubtful_again() {
  if (!fresh_.any_doubtful()) return {};
  constexpr std::size_t kAtOnce = 256;
  std::vector<Placed> pages;
  Status status;
  fresh_.for_each_doubtful([&](Page page, FreshPages::Sum sum) {
    mutex_.assume_held();
    auto words = map_.find(page / kPagesPerLeaf);
    if (!words && status) status = fail(std::move(words.error()));
    if (!words || *words == nullptr) return;
    const SlotRef at((**words)[page % kPagesPerLeaf]);
    pages.push_back({page, nullptr, sum, at, at});
  });
  if (!status) return status;
  std::ranges::sort(pages, {}, [](const Placed& one) { return one.from.slot(); });
  const store::AlignedBuffer buffer(std::min(pages.size(), kAtOnce) * base::kPageBytes);
  if (!buffer.is_there()) return fail(ErrorCode::kNoSpace, "cannot commit", store_.describe(), "no memory");
  for (std::size_t first = 0; status && first < pages.size(); first += kAtOnce) {
    const auto some = std::span(pages).subspan(first, std::min(kAtOnce, pages.size() - first));
    {
      const base::Without unlocked(mutex_);
      status = rewrite(some, buffer.part(0, some.size() * base::kPageBytes).data());
    }
    if (status) status = note(some);
  }
  return status;
}

Status Versions::rewrite(std::span<Placed> pages, std::byte* buffer) {
  std::vector<SlotRead> reads;
  std::vector<SlotWrite> writes;
  for (Placed& one : pages) {
    append(reads, one.from.slot(), buffer, longest_read(store_));
    append(writes, one.from.slot(), static_cast<const std::byte*>(buffer), longest_write(store_));
    one.bytes = buffer;
    buffer += base::kPageBytes;
  }
  Status status = read_slots(store_, reads);
  if (status) status = check_doubtful(pages);
  return status ? write_slots(store_, writes) : status;
}

SlotList& Versions::dead_after(Attempt& attempt) {
  return attempt.list && attempt.list_of == attempt.snapshots.size() ? *attempt.list : dead_;
}

Status Versions::place_and_seal(Attempt& attempt) {
  PageSlots for_pages(*this, attempt);
  BookSlots for_books(*this, attempt);
  auto place = [&](BlockTree& tree, SlotSource& source, BlockTree::Root& root) -> Status {
    if (auto placed = tree.place(source); !placed) return fail(std::move(placed.error()));
    root = tree.seal(attempt.blocks);
    return {};
  };
  Superblock& next = attempt.content;
  next = content_;
  if (Status status = place(attempt.map ? *attempt.map : map_, for_pages, next.map); !status) return status;

  SlotList& dead = dead_after(attempt);
  for (const SlotRef ref : newly_dead_) {
    if (Status status = dead.append(ref); !status) return status;
  }
  next.dead_count = dead.count();
  if (Status status = place(dead.tree(), for_books, next.dead); !status) return status;
  if (attempt.list && &dead != &*attempt.list) {
    SlotList::Root& root = attempt.snapshots[attempt.list_of].dead;
    root.count = attempt.list->count();
    if (Status status = place(attempt.list->tree(), for_books, root.tree); !status) return status;
  }
  if (attempt.is_snapshot) {
    Snapshot& snapshot = attempt.snapshots.back();
    snapshot.map = next.map;
    snapshot.dead = {std::exchange(next.dead, {}), std::exchange(next.dead_count, 0)};
  }
  next.writer = writer_;
  next.commit = next_commit();
  next.time_ns = now_ns();
  next.pages = attempt.pages;
  next.epoch = attempt.is_snapshot ? attempt.epoch + 1 : attempt.epoch;
  if (attempt.is_snapshot) attempt.snapshots.back().commit = next.commit;
  if (attempt.is_snapshot) attempt.snapshots.back().time_ns = next.time_ns;
  if (Status status = store_snapshots(attempt.snapshots); !status) return status;
  next.snapshot_count = attempt.snapshots.size();
  if (Status status = place(snapshot_table_, for_books, next.snapshots); !status) return status;
  return place_space(attempt);
}

Status Versions::place_space(Attempt& attempt) {
  BookSlots for_books(*this, attempt);
  for (bool more = true; more;) {
    auto placed = space_.tree().place(for_books);
    if (!placed) return fail(std::move(placed.error()));
    more = *placed;
  }
  attempt.content.space = space_.tree().seal(attempt.blocks);
  attempt.content.end_slot = space_.end_slot();
  attempt.content.taken_slots = space_.taken();
  return {};
}

// In the order of their slots, so that neighbours go in one piece.
Status Versions::put_books(Attempt& attempt) {
  constexpr std::size_t kAtOnce = 1024;
  std::ranges::sort(attempt.blocks, {}, &BlockTree::Sealed::slot);
  const store::AlignedBuffer buffer(std::min(attempt.blocks.size(), kAtOnce) * base::kPageBytes);
  if (!buffer.is_there()) return fail(ErrorCode::kNoSpace, "cannot commit", store_.describe(), "no memory");
  for (std::size_t first = 0; first < attempt.blocks.size(); first += kAtOnce) {
    const std::size_t end = std::min(attempt.blocks.size(), first + kAtOnce);
    std::vector<SlotWrite> entries;
    for (std::size_t i = first; i < end; ++i) {
      std::byte* const at = buffer.part((i - first) * base::kPageBytes, base::kPageBytes).data();
      std::memcpy(at, attempt.blocks[i].words->data(), base::kPageBytes);
      append(entries, attempt.blocks[i].slot, static_cast<const std::byte*>(at), longest_write(store_));
    }
    if (Status status = write_slots(store_, entries); !status) return status;
  }
  return {};
}

Status Versions::give_up(Attempt& attempt, Status why) {
  map_.finish(false);
  dead_.tree().finish(false);
  dead_.shorten(attempt.dead_count);
  snapshot_table_.finish(false);
  space_.tree().finish(false);
  newly_dead_.resize(attempt.newly_dead_count);
  Status undone = space_.give_up();
  for (const std::uint64_t slot : attempt.taken) {
    if (!undone) break;
    undone = attempt.superblock_was_tried ? space_.release(slot) : space_.give_back(slot);
  }
  if (attempt.sync_has_failed) fresh_.doubt();
  if (attempt.superblock_was_tried) {
    fresh_.clear();
    doubtful_commit_ = attempt.content.commit;
  }
  if (!undone) base::log(base::LogLevel::kWarn, "space is lost: {}", undone.error().message());
  return why;
}

// Asked for after the superblock was written (version_leases.hpp).
std::uint64_t Versions::oldest_read() {
  if (leases_ == nullptr) return VersionLeases::kNobody;
  auto oldest = leases_->oldest();
  if (oldest) return *oldest;
  base::log(base::LogLevel::kWarn, "space is kept for readers who may not be there: {}", oldest.error().message());
  return 0;
}

std::vector<SlotSpace::Run> Versions::finish(Attempt& attempt, std::uint64_t oldest_read) {
  if (attempt.map) map_ = std::move(*attempt.map);
  if (attempt.list && &dead_after(attempt) != &dead_) dead_ = std::move(*attempt.list);
  map_.finish(true);
  dead_.tree().finish(true);
  snapshot_table_.finish(true);
  space_.tree().finish(true);
  if (attempt.is_snapshot) dead_ = SlotList(store_, {});
  snapshots_ = std::move(attempt.snapshots);
  content_ = attempt.content;
  is_settled_ = true;
  epoch_ = content_.epoch;
  pages_ = content_.pages;
  newly_dead_.clear();
  fresh_.clear();
  std::erase_if(snapshot_maps_, [&](const auto& one) FARHEAP_REQUIRES(mutex_) {
    return std::ranges::none_of(snapshots_, [&](const Snapshot& kept) { return kept.commit == one.first; });
  });
  return space_.finish(content_.commit, oldest_read);
}

}  // namespace farheap::segment
