// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pages of a kept segment, to their slots and back. How they become versions is in versions_commit.cpp.
#include "segment/versions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/random_number.hpp"
#include "segment/slot_io.hpp"

namespace farheap::segment {

using base::kPageBytes;
using pager::Backing;

namespace {

std::uint64_t leaf_of(Versions::Page page) { return page / Versions::kPagesPerLeaf; }
std::size_t place_of(Versions::Page page) { return page % Versions::kPagesPerLeaf; }

Result<SlotRef> where(BlockTree& map, Versions::Page page) {
  auto words = map.find(leaf_of(page));
  if (!words) return fail(std::move(words.error()));
  return SlotRef(*words == nullptr ? 0 : (**words)[place_of(page)]);
}

}  // namespace

Versions::Versions(Store& store, VersionLeases* leases, const Superblock& content,
                   const std::array<Version, kSuperblocks>& versions)
    : store_(store),
      leases_(leases),
      writer_(base::random_number()),
      content_(content),
      versions_(versions),
      map_(store, "the map of the heap", content.map),
      space_(store, content.space, content.end_slot, content.taken_slots, content.commit),
      dead_(store, {content.dead, content.dead_count}),
      snapshot_table_(store, "the table of snapshots", content.snapshots),
      epoch_(content.epoch),
      pages_(content.pages) {}

Versions::~Versions() = default;

Superblock Versions::last_commit() const {
  base::LockGuard lock(mutex_);
  return content_;
}

BlockTree& Versions::map_of(const Snapshot* snapshot) {
  if (snapshot == nullptr) return map_;
  return snapshot_maps_.try_emplace(snapshot->commit, store_, "the map of a snapshot", snapshot->map).first->second;
}

Status Versions::read_by(const Snapshot* snapshot, std::span<const Backing::Read> runs) {
  const std::size_t longest = longest_read(store_);
  std::vector<SlotRead> entries;
  std::vector<Placed> doubtful;
  {
    base::LockGuard lock(mutex_);
    BlockTree& map = map_of(snapshot);
    for (const Backing::Read& one : runs) {
      for (std::uint32_t i = 0; i < one.run.count; ++i) {
        const Page page = one.run.first + i;
        std::byte* const into = one.into + i * kPageBytes;
        auto at = where(map, page);
        if (!at) return fail(std::move(at.error()));
        if (at->is_nowhere()) {
          std::memset(into, 0, kPageBytes);
        } else {
          append(entries, at->slot(), into, longest);
        }
        if (snapshot == nullptr && fresh_.is_doubtful(page)) {
          doubtful.push_back({page, into, fresh_.sum(page), *at, *at});
        }
      }
    }
  }
  if (Status status = read_slots(store_, entries); !status) return status;
  return check_doubtful(doubtful);
}

Status Versions::check_doubtful(std::span<const Placed> pages) const {
  for (const Placed& one : pages) {
    if (FreshPages::sum_of(one.bytes) == one.sum) continue;
    return fail(ErrorCode::kCorrupt, "cannot read a page that was written", fmt::format("block {}", one.from.slot()),
                store_.describe() + " has lost it: it could not make it durable before",
                "the heap is whole at its last commit: see to the device, and open it again");
  }
  return {};
}

Status Versions::read(std::span<const Backing::Read> runs) { return read_by(nullptr, runs); }

Status Versions::read(const Snapshot& snapshot, std::span<const Backing::Read> runs) {
  return read_by(&snapshot, runs);
}

Result<Backing::Stored> Versions::stored_from(const Snapshot* snapshot, Page first) {
  static_assert(kPagesPerLeaf == Backing::Stored().size());
  base::LockGuard lock(mutex_);
  auto words = map_of(snapshot).find(leaf_of(first));
  if (!words) return fail(std::move(words.error()));
  Backing::Stored stored;
  for (std::size_t i = 0; *words != nullptr && i < kPagesPerLeaf; ++i) stored[i] = !SlotRef((**words)[i]).is_nowhere();
  return stored;
}

void Versions::raise_fence() {
  if (leases_ != nullptr) space_.set_fence(leases_->fence());
}

// A page that no commit refers to yet is written over in its place, if nothing can arrive there late; all others go to
// new slots.
Status Versions::write(std::span<const Backing::Write> runs, Writer writer) {
  base::LockGuard writing(writing_);
  base::LockGuard lock(mutex_);
  if (Status settled = settle(); !settled) return settled;
  raise_fence();
  std::vector<Placed> pages;
  for (const Backing::Write& one : runs) {
    for (std::uint32_t i = 0; i < one.run.count; ++i) {
      const Page page = one.run.first + i;
      auto at = where(map_, page);
      if (!at) return fail(std::move(at.error()));
      const std::byte* const bytes = one.from + i * kPageBytes;
      const auto sum = writer == Writer::kForgets ? FreshPages::sum_of(bytes) : FreshPages::kNoSum;
      const bool stays = fresh_.has(page) && space_.is_behind_fence(at->slot());
      pages.push_back({page, bytes, sum, *at, stays ? *at : SlotRef()});
    }
  }
  Status status = take_slots(pages);
  if (status) {
    const base::Without unlocked(mutex_);
    status = put_pages(pages);
  }
  if (status) return note(pages);
  give_back(pages);
  return status;
}

Status Versions::take_slots(std::vector<Placed>& pages) {
  std::uint64_t wanted = std::ranges::count_if(pages, [](const Placed& one) { return one.to.is_nowhere(); });
  SlotSpace::Run free;
  for (Placed& one : pages) {
    if (!one.to.is_nowhere()) continue;
    if (free.count == 0) {
      auto taken = space_.take(wanted);
      if (!taken) return fail(std::move(taken.error()));
      free = *taken;
      wanted -= free.count;
    }
    one.to = SlotRef(free.first++, epoch_);
    --free.count;
  }
  return {};
}

Status Versions::put_pages(const std::vector<Placed>& pages) {
  std::vector<SlotWrite> entries;
  for (const Placed& one : pages) append(entries, one.to.slot(), one.bytes, longest_write(store_));
  return write_slots(store_, entries);
}

// From now on the page is there; `at` may be nowhere. On error it is where it was: what has to be read comes first.
Status Versions::note(Page page, SlotRef at, FreshPages::Sum sum) {
  auto words = map_.change(leaf_of(page));
  if (!words) return fail(std::move(words.error()));
  std::uint64_t& word = (**words)[place_of(page)];
  const SlotRef old(word);
  const bool was_fresh = fresh_.has(page);
  if (!old.is_nowhere()) {
    if (Status status = was_fresh ? space_.give_back(old.slot()) : retire(old); !status) return status;
  }
  word = at.word();
  if (!at.is_nowhere()) written_lately_.insert(leaf_of(page));
  if (old.is_nowhere() != at.is_nowhere()) pages_ = at.is_nowhere() ? pages_ - 1 : pages_ + 1;
  if (at.is_nowhere()) {
    fresh_.remove(page);
  } else {
    fresh_.add(page, sum);
  }
  return {};
}

// The places of what is not noted any more are free again.
Status Versions::note(std::span<const Placed> pages) {
  for (; !pages.empty(); pages = pages.subspan(1)) {
    const Placed& one = pages.front();
    if (one.from == one.to) {
      fresh_.add(one.page, one.sum);
      continue;
    }
    if (Status status = note(one.page, one.to, one.sum); !status) return give_back(pages), status;
  }
  return {};
}

void Versions::give_back(std::span<const Placed> pages) {
  for (const Placed& one : pages) {
    if (one.from == one.to || one.to.is_nowhere()) continue;  // it is there already, or its turn never came
    const Status back = space_.give_back(one.to.slot());
    if (!back) base::log(base::LogLevel::kWarn, "space is lost: {}", back.error().message());
  }
}

// The newest state does not refer to it any more. Snapshots may.
Status Versions::retire(SlotRef old) {
  if (Status status = load_snapshots(); !status) return status;
  if (snapshots_.empty() || old.epoch() > snapshots_.back().epoch) return space_.release(old.slot());
  newly_dead_.push_back(old);
  return {};
}

Status Versions::forget(Page first, std::uint64_t count) {
  base::LockGuard writing(writing_);
  base::LockGuard lock(mutex_);
  for (Page page = first; page < first + count;) {
    auto words = map_.find(leaf_of(page));
    if (!words) return fail(std::move(words.error()));
    const Page end = std::min(first + count, (leaf_of(page) + 1) * kPagesPerLeaf);
    if (*words == nullptr) page = end;
    for (; page < end; ++page) {
      if ((**words)[place_of(page)] == 0) continue;
      if (Status status = note(page, SlotRef(), FreshPages::kNoSum); !status) return status;
    }
  }
  return {};
}

}  // namespace farheap::segment
