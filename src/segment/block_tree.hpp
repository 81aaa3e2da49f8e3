// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A table in a store: leaves of one block each, by number, under a tree of blocks that point to them (256 a block, with
// the XXH3 of what they point to). What is in the store is never changed in place: a changed leaf gets a new slot when
// it is written, and so does every block above it; so any root that was ever written can be read for as long as its
// slots are not given away.
//
// A write has steps, because where blocks go may itself be written down in a tree:
//   place()   every changed block gets a new slot; may be called again for what has changed meanwhile
//   seal()    the blocks' bytes are final: hands them out to be written, and returns the new root
//   finish()  the root is safe in the store (or not: then all is as before place())
//
// Blocks are read when they are asked for, checked, and stay in memory.
//
// Thread-safety: none; the owner locks.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "farheap/store.hpp"
#include "segment/slot_ref.hpp"

namespace farheap::segment {

// Who gives out slots for blocks that are written, and hears of those that the tree does not refer to any more.
class SlotSource {
 public:
  virtual ~SlotSource() = default;
  [[nodiscard]] virtual Result<SlotRef> take() = 0;
  [[nodiscard]] virtual Status replaced(SlotRef old) = 0;
};

class BlockTree {
 public:
  struct Root {
    SlotRef at;
    std::uint64_t checksum = 0;
    std::uint64_t levels = 0;  // above the leaves
  };
  static constexpr std::uint64_t kMostLevels = 4;

  // One block of a tree, for who walks trees on his own. kCorrupt if it does not have that checksum. Requires: `into`
  // is aligned to a page.
  [[nodiscard]] static Status read_block(Store& store, const char* name, SlotRef at, std::uint64_t checksum,
                                         BlockWords& into);
  [[nodiscard]] static std::uint64_t checksum_of(const BlockWords& words);
  // A block above the leaves points to so many.
  static constexpr unsigned kFanOutShift = 8;
  static constexpr std::uint64_t kFanOut = 1 << kFanOutShift;

  // `name` is for messages: "the map". The store outlives the tree.
  BlockTree(Store& store, const char* name, Root root);
  ~BlockTree();
  BlockTree(BlockTree&&) noexcept;
  BlockTree& operator=(BlockTree&&) noexcept;

  // nullptr: there is no such leaf, it reads as zeros. Valid until the next call that is not const.
  [[nodiscard]] Result<const BlockWords*> find(std::uint64_t leaf);
  // To be changed now; made if there is none. Requires: leaf < 256^kMostLevels.
  [[nodiscard]] Result<BlockWords*> change(std::uint64_t leaf);

  [[nodiscard]] bool has_changed() const;
  // True: something was placed.
  [[nodiscard]] Result<bool> place(SlotSource& source);
  struct Sealed {
    std::uint64_t slot;
    const BlockWords* words;
  };
  // Requires: all that has changed is placed.
  [[nodiscard]] Root seal(std::vector<Sealed>& blocks);
  void finish(bool written);

  // What a visitor sees: each block, and whether to go on below it. Leaves have level 0; `words` are a leaf's, else
  // nullptr.
  struct Visited {
    SlotRef at;
    std::uint64_t level;
    std::uint64_t number;  // of the leaf, or of the first leaf below
    const BlockWords* words;
  };
  using Visit = std::function<bool(const Visited&)>;
  // What is in the store, by number, without keeping it in memory. Requires: nothing has changed since it was written.
  [[nodiscard]] Status for_each_block(const Visit& visit) const;

 private:
  struct Node;
  [[nodiscard]] Status load(Node& node, SlotRef at, std::uint64_t checksum) const;
  [[nodiscard]] Result<Node*> descend(std::uint64_t leaf, bool to_change);
  [[nodiscard]] Result<Node*> child(Node& node, std::uint64_t level, unsigned index, bool to_change);
  void grow_to(std::uint64_t leaf);
  [[nodiscard]] Result<bool> place_below(Node& node, SlotSource& source);
  std::uint64_t seal_below(Node& node, std::vector<Sealed>& blocks);
  static void finish_below(Node& node, bool written);
  [[nodiscard]] Status visit_below(SlotRef at, std::uint64_t checksum, std::uint64_t level, std::uint64_t number,
                                   const Visit& visit) const;

  Store* store_;
  const char* name_;
  Root root_;                  // as it was written last
  Root sealed_;                // as it is being written
  std::uint64_t levels_;       // now
  std::unique_ptr<Node> top_;  // absent: not read yet, or nothing there
};

}  // namespace farheap::segment
