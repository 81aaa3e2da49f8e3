// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A new tree out of its leaves, which come in order and without a gap. Holds one block a level in memory. The trees are
// those of block_tree.hpp.
//
// Thread-safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "segment/block_tree.hpp"
#include "segment/slot_writer.hpp"

namespace farheap::segment {

class TreeWriter {
 public:
  // `epoch` is that of its slots.
  TreeWriter(SlotWriter& writer, std::uint64_t epoch) : writer_(writer), epoch_(epoch) {}
  [[nodiscard]] Status add(const BlockWords& leaf) { return put(leaf, 0); }
  [[nodiscard]] Result<BlockTree::Root> finish();

  // Blocks of a tree with so many leaves, the leaves too.
  [[nodiscard]] static std::uint64_t blocks_of(std::uint64_t leaves);

 private:
  struct Level {
    BlockWords words{};
    std::uint64_t entries = 0;
  };
  // A block of a level, written and entered in the one above.
  [[nodiscard]] Status put(const BlockWords& block, std::size_t level);

  SlotWriter& writer_;
  std::uint64_t epoch_;
  std::vector<Level> above_;  // [0] points to leaves
};

// A list of slots (slot_list.hpp) that is written from its beginning to its end.
class ListWriter {
 public:
  ListWriter(SlotWriter& writer, std::uint64_t epoch) : tree_(writer, epoch) {}
  [[nodiscard]] Status append(SlotRef ref);
  struct Root {
    BlockTree::Root tree;
    std::uint64_t count = 0;
  };
  [[nodiscard]] Result<Root> finish();

 private:
  TreeWriter tree_;
  BlockWords leaf_{};
  std::uint64_t count_ = 0;
};

}  // namespace farheap::segment
