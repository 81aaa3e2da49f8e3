// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which slots of a kept segment's store are taken: a bit each, in a tree that is part of every commit.
//
// A slot that a version referred to is given away in two steps. Its bit is cleared at once, so the next commit says
// that it is free; but it is *held* until the commit after that is safe, too, because until then one of the superblocks
// may still lead to it (superblock.hpp), and longer while a reader has a lease on a commit that refers to it
// (version_leases.hpp). A slot that no version ever referred to is free at once.
//
// Free slots are taken in rising order, so that what is written together lies together, and long runs are preferred;
// where too few are free to be worth the search, the store grows. Leaves are read when their turn comes. What was held
// when it was opened is not known any more: nothing is reused before both superblocks lead to what was opened or to
// something newer (the owner sees to that when is_waiting()), nor while somebody reads an older commit.
//
// No slot below a fence (version_leases.hpp) is taken, whether it is free or not.
//
// Thread-safety: none; the owner locks.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "segment/block_tree.hpp"
#include "segment/superblock.hpp"

namespace farheap::segment {

class SlotSpace {
 public:
  struct Run {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };
  static constexpr std::uint64_t kLeafSlots = base::kPageBytes * 8;
  // Where a slot is in its leaf.
  [[nodiscard]] static std::uint64_t bit_of(std::uint64_t slot) { return std::uint64_t{1} << (slot % 64); }
  [[nodiscard]] static std::size_t word_of(std::uint64_t slot) { return slot % kLeafSlots / 64; }

  // As `commit` left it. `taken`: how many slots are, superblocks apart.
  SlotSpace(Store& store, BlockTree::Root root, std::uint64_t end_slot, std::uint64_t taken, std::uint64_t commit);

  // 1 to `wanted` free slots in a row. Requires: wanted > 0. kNoSpace when all numbers are used up.
  [[nodiscard]] Result<Run> take(std::uint64_t wanted);
  // From now on. It only rises.
  void set_fence(std::uint64_t fence);
  // What was written there may be written over.
  [[nodiscard]] bool is_behind_fence(std::uint64_t slot) const { return slot >= fence_; }
  // No version ever referred to it.
  [[nodiscard]] Status give_back(std::uint64_t slot);
  // A version does, but the next commit does not.
  [[nodiscard]] Status release(std::uint64_t slot);

  // Around an attempt to commit. What was released since begin() is taken again when it is given up.
  void begin() { released_before_ = released_.size(); }
  [[nodiscard]] Status give_up();
  // The commit is safe. What has become free by it, in runs: the store need not keep it. `oldest_read`: the oldest
  // commit that is being read, as it was asked for after this one was safe.
  [[nodiscard]] std::vector<Run> finish(std::uint64_t commit, std::uint64_t oldest_read);

  // Free slots would be worth a search, if only one knew that no superblock and no reader has them.
  [[nodiscard]] bool is_waiting() const { return !may_reuse_ && is_worth_searching(); }
  // Both superblocks lead to what was opened. `oldest_read` was asked for after that.
  void settle(std::uint64_t oldest_read) { may_reuse_ = may_reuse_ || oldest_read >= opened_at_; }

  // What the store need not keep, in runs: slots that neither this state nor one that may be read refers to, and all
  // behind the end. None before the first commit of this opening, or settle().
  [[nodiscard]] Result<std::vector<Run>> free_runs();

  [[nodiscard]] std::uint64_t end_slot() const { return end_; }
  [[nodiscard]] std::uint64_t taken() const { return taken_; }
  [[nodiscard]] BlockTree& tree() { return tree_; }

 private:
  // A free share below this is not looked for: 1/16 of the store.
  static constexpr std::uint64_t kWorthSearching = 16;
  static constexpr std::uint64_t kAll = UINT64_MAX;
  // Shorter runs are left for the books, which take single slots.
  static constexpr std::uint64_t kLeastRun = 32;

  [[nodiscard]] bool is_worth_searching() const;
  [[nodiscard]] Status mark(std::uint64_t slot, bool taken);
  [[nodiscard]] Status mark(Run run);
  // count 0: none.
  [[nodiscard]] Result<Run> find(std::uint64_t wanted, std::uint64_t least);
  [[nodiscard]] Run find_in_leaf(const BlockWords* taken, const BlockWords* held, std::uint64_t from, std::uint64_t end,
                                 std::uint64_t wanted, std::uint64_t least) const;
  void hold(std::uint64_t slot, bool on);

  BlockTree tree_;
  std::uint64_t end_;
  std::uint64_t taken_;
  std::uint64_t held_count_ = 0;
  std::uint64_t cursor_ = 0;               // where the search goes on
  std::uint64_t shortest_missing_ = kAll;  // no run of so many was found since something became free
  bool may_reuse_ = false;
  std::uint64_t fence_ = kSuperblocks;
  std::unordered_map<std::uint64_t, std::unique_ptr<BlockWords>> held_;  // by leaf, a bit a slot
  std::vector<std::uint64_t> released_;                                  // since the last commit
  std::size_t released_before_ = 0;                                      // the attempt
  struct Waiting {
    std::uint64_t commit;  // the first that does not refer to them
    std::vector<std::uint64_t> slots;
  };
  std::deque<Waiting> waiting_;  // the oldest first
  std::uint64_t opened_at_;      // the commit
};

}  // namespace farheap::segment
