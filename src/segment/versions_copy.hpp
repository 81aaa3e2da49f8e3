// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The versions of a kept segment, written into another store: by age, each as what has changed since the one before,
// its pages in the order of their addresses. Nothing else of the source is copied, so the target has no gaps.
//
// The target first gets an empty segment that is not finished (KeptSegment::is_unfinished); its superblocks are
// replaced at the very end. Whatever ends the work before leaves what nobody opens.
//
// What pages hold is copied as it is read: a store with checksums tells if that is wrong. All blocks of the maps are
// checked on the way. Memory: the buffer of SlotWriter, and a few blocks.
//
// Thread-safety: none. Requires: what the versions refer to stays in the source meanwhile (a lease).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "segment/superblock.hpp"
#include "segment/tree_writer.hpp"
#include "segment/versions.hpp"

namespace farheap::segment {

class VersionsCopy {
 public:
  // Of all that is copied, in pages; called between two batches. What it fails with ends the copy.
  using Progress = std::function<Status(std::uint64_t pages)>;

  // Makes the target unfinished. kConflict if there is a segment in it. `like`: a superblock of the source. Both stores
  // outlive the copy. `fence`: of the target's leases.
  [[nodiscard]] static Result<std::unique_ptr<VersionsCopy>> begin(Store& source, const Superblock& like, Store& target,
                                                                   Progress progress, std::uint64_t fence = 0);
  ~VersionsCopy();

  // The next snapshot. On error it is as if it had not been asked for, and the next one may be.
  [[nodiscard]] Status add(const Snapshot& snapshot);
  // The newest state, and the end. It is `like`, but for where things are, its number of snapshots, and its id.
  struct Newest {
    BlockTree::Root map;
    std::uint64_t pages = 0;
    std::uint64_t commit = 0;
    std::uint64_t time_ns = 0;
    std::array<std::byte, 16> id{};
  };
  // On error nothing was finished, but if that was an error of the target another state may be tried.
  [[nodiscard]] Status finish(const Newest& newest);

 private:
  // Where a part of a map begins; its level may be below the one that is asked for, if the map was small once.
  struct Branch {
    SlotRef at;
    std::uint64_t checksum = 0;
    std::uint64_t level = 0;
    [[nodiscard]] bool is_none() const { return at.is_nowhere(); }
  };
  // The same part of three maps: of the version before, in the source and in the target, and of the one that is copied.
  struct Three {
    Branch before, copied, now;
  };
  struct Blocks;

  VersionsCopy(Store& source, const Superblock& like, Store& target, Progress progress);
  [[nodiscard]] Result<BlockTree::Root> copy_map(const BlockTree::Root& map, std::uint64_t pages,
                                                 ListWriter::Root& dead);
  [[nodiscard]] Result<Branch> copy_below(const Three& branches, std::uint64_t level);
  [[nodiscard]] Status copy_leaf(Blocks& blocks);
  [[nodiscard]] Status copy_entries(const Three& branches, Blocks& blocks, std::uint64_t level);
  [[nodiscard]] Status load(const Three& branches, std::uint64_t level, Blocks& blocks);
  [[nodiscard]] Status kill(SlotRef at) { return at.is_nowhere() ? Status{} : dead_->append(at); }
  [[nodiscard]] Result<BlockTree::Root> write_snapshots();
  [[nodiscard]] Status write_space(Superblock& content);

  Store& source_;
  Store& target_;
  const Superblock like_;
  std::array<Version, kSuperblocks> superblocks_{};  // of the target
  std::uint64_t first_slot_ = 0;
  std::unique_ptr<SlotWriter> writer_;
  Progress progress_;
  std::uint64_t copied_ = 0;  // pages
  std::uint64_t loaded_ = 0;  // blocks of the maps of this version

  BlockTree::Root before_;                       // the map of the last version, in the source
  BlockTree::Root written_;                      // and in the target
  std::uint64_t pages_ = 0;                      // of it
  std::vector<Snapshot> snapshots_;              // as the target has them
  ListWriter* dead_ = nullptr;                   // of the version that is copied
  std::vector<std::unique_ptr<Blocks>> blocks_;  // by level
};

}  // namespace farheap::segment
