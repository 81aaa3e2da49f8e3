// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A long list of slots in a store: 512 a leaf of a tree. It only grows, or is dropped.
//
// Thread-safety: none; the owner locks.
#pragma once

#include "segment/block_tree.hpp"

namespace farheap::segment {

class SlotList {
 public:
  struct Root {
    BlockTree::Root tree;
    std::uint64_t count = 0;
  };
  SlotList(Store& store, Root root) : tree_(store, "a list of slots", root.tree), count_(root.count) {}

  [[nodiscard]] Status append(SlotRef ref) {
    auto words = tree_.change(count_ / kPerLeaf);
    if (!words) return fail(std::move(words.error()));
    (**words)[count_++ % kPerLeaf] = ref.word();
    return {};
  }
  // What was appended beyond is forgotten. Requires: it was not sealed, or is not finished.
  void shorten(std::uint64_t count) { count_ = count; }

  // Calls visit(ref) -> Status for each, until one fails.
  template <class Visit>
  [[nodiscard]] Status for_each(Visit visit) {
    const BlockWords* words = nullptr;
    for (std::uint64_t i = 0; i < count_; ++i) {
      if (i % kPerLeaf == 0) {
        auto found = tree_.find(i / kPerLeaf);
        if (!found) return fail(std::move(found.error()));
        words = *found;
      }
      const SlotRef ref(words != nullptr ? (*words)[i % kPerLeaf] : 0);
      if (ref.is_nowhere()) return fail(ErrorCode::kCorrupt, "cannot read a list of slots", "the heap", "it has a gap");
      if (Status status = visit(ref); !status) return status;
    }
    return {};
  }

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] BlockTree& tree() { return tree_; }

 private:
  static constexpr std::uint64_t kPerLeaf = std::tuple_size_v<BlockWords>;
  BlockTree tree_;
  std::uint64_t count_;
};

}  // namespace farheap::segment
