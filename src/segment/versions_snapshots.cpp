// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Snapshots: their table, and what becomes of slots when one is removed or returned to.
//
// Each snapshot has a list of dead slots: those that the snapshot before refers to, and it does not. The newest state
// has one, too. When a snapshot goes, what only it referred to is on the list of the next one: what came into being
// after the snapshot before.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/random_number.hpp"
#include "segment/versions_attempt.hpp"

namespace farheap::segment {
namespace {

constexpr std::uint64_t kWordsPerRecord = sizeof(Snapshot) / 8;
constexpr std::uint64_t kRecordsPerLeaf = std::tuple_size_v<BlockWords> / kWordsPerRecord;

void tell_of_damage(const Store& store, const FoundSuperblock& found) {
  base::log(base::LogLevel::kWarn,
            "{}: one of its two superblocks is damaged; opened at commit {}. A commit that was interrupted leaves it "
            "so; otherwise one may be lost",
            store.describe(), found.content.commit);
}

// A commit that a former writer has sent may arrive until what it would replace is replaced. So the state that was
// found becomes a commit of its own; if another came first, that is the one.
Status shut_out_former_writers(Store& store, FoundSuperblock& found) {
  constexpr int kTries = 4;
  for (int i = 1;; ++i) {
    Superblock same = found.content;
    same.writer = base::random_number();
    ++same.commit;
    Status status = store.sync();
    if (status) status = write_superblock(store, same, found.versions);
    if (status) {
      found.content = same;
      found.other_is_the_one_before = true;
      return {};
    }
    if (status.error().code != ErrorCode::kConflict || i == kTries) return status;
    auto again = read_superblock(store);
    if (!again) return fail(std::move(again.error()));
    found = *again;
  }
}

}  // namespace

Result<std::unique_ptr<Versions>> Versions::create(Store& store, const Settings& settings, VersionLeases* leases) {
  auto there = read_superblock(store);
  if (there || there.error().code != ErrorCode::kNotFound) {
    if (!there && there.error().code != ErrorCode::kCorrupt) return fail(std::move(there.error()));
    return fail(ErrorCode::kConflict, "cannot create a heap", store.describe(),
                there ? "there is one already" : "there is something else: " + there.error().why,
                "open it, or choose another place");
  }
  Superblock empty;
  const std::uint64_t id[2] = {base::random_number(), base::random_number()};
  std::memcpy(empty.id.data(), id, sizeof id);
  empty.base_address = settings.base_address;
  empty.capacity_pages = settings.capacity_pages;
  std::unique_ptr<Versions> made(new Versions(store, leases, empty, {}));
  base::LockGuard writing(made->writing_);
  base::LockGuard lock(made->mutex_);
  made->snapshots_loaded_ = true;
  Attempt attempt(*made);
  if (Status status = made->commit(attempt); !status) return fail(std::move(status.error()));
  return made;
}

Result<std::unique_ptr<Versions>> Versions::open(Store& store, VersionLeases* leases) {
  auto found = read_superblock(store);
  if (!found) return fail(std::move(found.error()));
  if (found->one_is_damaged) tell_of_damage(store, *found);
  if (leases != nullptr && leases->is_anybody_late()) {
    if (Status status = shut_out_former_writers(store, *found); !status) return fail(std::move(status.error()));
  }
  std::unique_ptr<Versions> opened(new Versions(store, leases, found->content, found->versions));
  base::LockGuard lock(opened->mutex_);
  opened->has_doubtful_end_ = !found->other_is_the_one_before;
  return opened;
}

std::unique_ptr<Versions> Versions::at(Store& store, const Superblock& content) {
  return std::unique_ptr<Versions>(new Versions(store, nullptr, content, {}));
}

// A superblock that a writer is writing may look damaged: it is looked at again before it counts as that.
Result<std::unique_ptr<Versions>> Versions::open_to_read(Store& store, VersionLeases& leases) {
  constexpr int kTries = 100;
  constexpr int kTriesWhileDamaged = 10;
  constexpr std::chrono::milliseconds kBetween(2);
  for (int i = 0; i < kTries; ++i) {
    auto found = read_superblock(store);
    if (!found) return fail(std::move(found.error()));
    if (found->one_is_damaged && i < kTriesWhileDamaged) {
      base::sleep_for(kBetween);
      continue;
    }
    if (Status taken = leases.take(found->content.commit); !taken) return fail(std::move(taken.error()));
    auto again = read_superblock(store);
    if (!again) return fail(std::move(again.error()));
    if (again->content.commit > found->content.commit + 1) continue;
    if (found->one_is_damaged) tell_of_damage(store, *found);
    return std::unique_ptr<Versions>(new Versions(store, nullptr, found->content, found->versions));
  }
  return fail(ErrorCode::kUnavailable, "cannot open the heap", store.describe(),
              "its writer commits faster than it can be opened", "try again");
}

Status Versions::load_snapshots() {
  if (snapshots_loaded_) return {};
  const auto damaged = [&](const char* why) {
    return fail(ErrorCode::kCorrupt, "cannot read the table of snapshots", store_.describe(), why);
  };
  std::vector<Snapshot> all;
  for (std::uint64_t i = 0; i < content_.snapshot_count; ++i) {
    auto words = snapshot_table_.find(i / kRecordsPerLeaf);
    if (!words) return fail(std::move(words.error()));
    if (*words == nullptr) return damaged("a part of it is missing");
    Snapshot record;
    std::memcpy(static_cast<void*>(&record), (*words)->data() + i % kRecordsPerLeaf * kWordsPerRecord, sizeof record);
    record.name[Snapshot::kLongestName] = '\0';
    if (record.map.levels > BlockTree::kMostLevels || record.dead.tree.levels > BlockTree::kMostLevels ||
        record.dead.count > content_.end_slot) {
      return damaged("a record makes no sense");
    }
    all.push_back(record);
  }
  snapshots_ = std::move(all);
  snapshots_loaded_ = true;
  return {};
}

Status Versions::store_snapshots(const std::vector<Snapshot>& snapshots) {
  for (std::size_t i = 0; i < snapshots.size(); ++i) {
    const std::size_t at = i % kRecordsPerLeaf * kWordsPerRecord;
    auto words = snapshot_table_.find(i / kRecordsPerLeaf);
    if (!words) return fail(std::move(words.error()));
    if (*words != nullptr && std::memcmp((*words)->data() + at, &snapshots[i], sizeof(Snapshot)) == 0) continue;
    auto changed = snapshot_table_.change(i / kRecordsPerLeaf);
    if (!changed) return fail(std::move(changed.error()));
    std::memcpy((*changed)->data() + at, &snapshots[i], sizeof(Snapshot));
  }
  return {};
}

Result<std::vector<Snapshot>> Versions::snapshots() {
  base::LockGuard lock(mutex_);
  if (Status status = load_snapshots(); !status) return fail(std::move(status.error()));
  return snapshots_;
}

Status Versions::snapshot(std::string_view name) {
  const char* const kWhat = "cannot make a snapshot";
  if (name.empty() || name.size() > Snapshot::kLongestName || name.find('\0') != name.npos) {
    return fail(ErrorCode::kInvalidArgument, kWhat, std::string(name), "the name has no characters, or too many",
                "take 1 to 95 bytes");
  }
  base::LockGuard writing(writing_);
  base::LockGuard lock(mutex_);
  if (Status status = load_snapshots(); !status) return status;
  if (std::ranges::any_of(snapshots_, [&](const Snapshot& one) { return name == one.name; })) {
    return fail(ErrorCode::kConflict, kWhat, std::string(name), "there is one of that name",
                "remove it first, or take another name");
  }
  if (epoch_ + 1 == SlotRef::kEpochs) {
    return fail(ErrorCode::kNoSpace, kWhat, std::string(name), "16,777,215 snapshots were made in this heap",
                "copy the heap, and go on with the copy");
  }
  Attempt attempt(*this);
  Snapshot fresh{};
  std::memcpy(fresh.name, name.data(), name.size());
  fresh.epoch = epoch_;
  fresh.pages = pages_;
  attempt.snapshots.push_back(fresh);
  attempt.is_snapshot = true;
  return commit(attempt);
}

// The blocks of a list that nobody needs any more; not what is on it.
Status Versions::forget_list(const SlotList::Root& list) {
  Status status;
  const BlockTree tree(store_, "a list of slots", list.tree);
  const Status read = tree.for_each_block([&](const BlockTree::Visited& block) FARHEAP_REQUIRES(mutex_) {
    if (status) status = space_.release(block.at.slot());
    return status.has_value();
  });
  return status ? read : status;
}

// What a snapshot's list and that of the next one become when it goes: what the snapshot before still refers to.
Status Versions::join_lists(const Snapshot& removed, const SlotList::Root& next, const Snapshot* before,
                            SlotList& joined) {
  const auto keep_what_is_older = [&](SlotRef ref) -> Status {
    mutex_.assume_held();
    const bool is_needed = before != nullptr && ref.epoch() <= before->epoch;
    return is_needed ? joined.append(ref) : space_.release(ref.slot());
  };
  for (const SlotList::Root* root : {&removed.dead, &next}) {
    SlotList list(store_, *root);
    if (Status status = list.for_each(keep_what_is_older); !status) return status;
    if (Status status = forget_list(*root); !status) return status;
  }
  return {};
}

Status Versions::remove(std::string_view name) {
  base::LockGuard writing(writing_);
  base::LockGuard lock(mutex_);
  if (Status status = load_snapshots(); !status) return status;
  const auto found = std::ranges::find_if(snapshots_, [&](const Snapshot& one) { return name == one.name; });
  if (found == snapshots_.end()) {
    return fail(ErrorCode::kNotFound, "cannot remove a snapshot", std::string(name), "there is none of that name");
  }
  const std::size_t number = static_cast<std::size_t>(found - snapshots_.begin());
  if (Status status = commit_changes(); !status) return status;  // so that all that is dead is on a list
  const Snapshot removed = snapshots_[number];
  Attempt attempt(*this);
  attempt.snapshots.erase(attempt.snapshots.begin() + static_cast<std::ptrdiff_t>(number));
  const bool is_newest = number == attempt.snapshots.size();
  const SlotList::Root next =
      is_newest ? SlotList::Root{content_.dead, content_.dead_count} : attempt.snapshots[number].dead;
  attempt.list.emplace(store_, SlotList::Root{});
  attempt.list_of = number;
  Status status = join_lists(removed, next, number == 0 ? nullptr : &snapshots_[number - 1], *attempt.list);
  return status ? commit(attempt) : give_up(attempt, std::move(status));
}

// Slots of the last commit that came into being after that epoch.
Status Versions::release_newer_than(std::uint64_t epoch) {
  Status status;
  const BlockTree map(store_, "the map of the heap", content_.map);
  const auto release = [&](SlotRef at) FARHEAP_REQUIRES(mutex_) {
    if (status && !at.is_nowhere() && at.epoch() > epoch) status = space_.release(at.slot());
  };
  const Status read = map.for_each_block([&](const BlockTree::Visited& block) FARHEAP_REQUIRES(mutex_) {
    if (block.at.epoch() <= epoch) return false;
    release(block.at);
    if (block.words == nullptr) return status.has_value();
    for (const std::uint64_t word : *block.words) release(SlotRef(word));
    return status.has_value();
  });
  return status ? read : status;
}

// What is on the lists of the states that go: each slot was alive in the state before, so it is one of the snapshot
// that is returned to, or came into being after it and is needed by nobody.
Status Versions::release_dead_newer_than(std::uint64_t epoch, const SlotList::Root& root) {
  SlotList list(store_, root);
  Status status = list.for_each([&](SlotRef ref) {
    mutex_.assume_held();
    return ref.epoch() > epoch ? space_.release(ref.slot()) : Status{};
  });
  return status ? forget_list(root) : status;
}

Status Versions::roll_back(std::string_view name) {
  base::LockGuard writing(writing_);
  base::LockGuard lock(mutex_);
  if (Status status = load_snapshots(); !status) return status;
  const auto found = std::ranges::find_if(snapshots_, [&](const Snapshot& one) { return name == one.name; });
  if (snapshots_.empty() || (!name.empty() && found == snapshots_.end())) {
    return fail(ErrorCode::kNotFound, "cannot go back", store_.describe(),
                snapshots_.empty() ? "there is no snapshot" : fmt::format("it has no snapshot '{}'", name));
  }
  const std::size_t kept = name.empty() ? snapshots_.size() : static_cast<std::size_t>(found - snapshots_.begin()) + 1;
  if (Status status = commit_changes(); !status) return status;
  const Snapshot& target = snapshots_[kept - 1];
  Attempt attempt(*this);
  attempt.snapshots.resize(kept);
  attempt.map.emplace(store_, "the map of the heap", target.map);
  attempt.pages = target.pages;
  attempt.list.emplace(store_, SlotList::Root{});
  attempt.list_of = kept;
  Status status = release_newer_than(target.epoch);
  if (status) status = release_dead_newer_than(target.epoch, {content_.dead, content_.dead_count});
  for (std::size_t i = kept; status && i < snapshots_.size(); ++i) {
    status = release_dead_newer_than(target.epoch, snapshots_[i].dead);
  }
  return status ? commit(attempt) : give_up(attempt, std::move(status));
}

}  // namespace farheap::segment
