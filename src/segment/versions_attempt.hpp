// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An attempt to commit: what it would make of the segment, and what has to be undone if it fails.
//
// Thread-safety: none; its maker has writing_ of Versions.
#pragma once

#include <optional>

#include "segment/versions.hpp"

namespace farheap::segment {

struct Versions::Attempt {
  explicit Attempt(Versions& versions)
      : snapshots(versions.snapshots_),
        dead_count(versions.dead_.count()),
        newly_dead_count(versions.newly_dead_.size()),
        epoch(versions.epoch_),
        pages(versions.pages_) {
    versions.space_.begin();
  }

  // As they will be. A new snapshot is the last one; what it does not know yet is filled in.
  std::vector<Snapshot> snapshots;
  bool is_snapshot = false;
  // Instead of the map; the dead slots of the newest state are none then.
  std::optional<BlockTree> map;
  // Instead of the list of dead slots of a snapshot, or (snapshots.size()) of the newest state.
  std::optional<SlotList> list;
  std::size_t list_of = 0;

  // As they were.
  std::uint64_t dead_count;
  std::size_t newly_dead_count;
  std::uint64_t epoch;
  std::uint64_t pages;

  Superblock content;
  std::vector<std::uint64_t> taken;  // slots of books
  std::vector<BlockTree::Sealed> blocks;
  bool sync_has_failed = false;  // of all that comes before the superblock
  bool superblock_was_tried = false;
};

}  // namespace farheap::segment
