// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pages of a kept segment whose slots no commit refers to yet, and what has to be known of them when a sync of the
// store fails. The kernel reports a write that failed once, and forgets its bytes: a later sync succeeds without them.
// So from a failed sync on these pages are in doubt until they are written again. Who still has such a page in memory
// writes it again anyway. Of the others a checksum tells whether the store gives what was written, or older bytes.
//
// Thread-safety: none; the owner locks.
#pragma once

#include <xxhash.h>

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/units.hpp"
#include "pager/view.hpp"

namespace farheap::segment {

class FreshPages {
 public:
  using Page = pager::PageNumber;
  static constexpr std::uint64_t kPagesPerLeaf = 512;
  using Sum = std::uint64_t;
  static constexpr Sum kNoSum = 0;
  [[nodiscard]] static Sum sum_of(const std::byte* page) {
    const Sum sum = XXH3_64bits(page, base::kPageBytes);
    return sum == kNoSum ? 1 : sum;
  }

  [[nodiscard]] bool has(Page page) const { return is_set(page, &Leaf::fresh); }
  [[nodiscard]] bool is_doubtful(Page page) const { return doubtful_ != 0 && is_set(page, &Leaf::doubtful); }
  [[nodiscard]] bool any_doubtful() const { return doubtful_ != 0; }
  // kNoSum: whoever wrote it has it still.
  [[nodiscard]] Sum sum(Page page) const {
    const auto leaf = leaves_.find(page / kPagesPerLeaf);
    return leaf == leaves_.end() || !leaf->second.sums ? kNoSum : (*leaf->second.sums)[page % kPagesPerLeaf];
  }

  // It was written.
  void add(Page page, Sum sum) {
    Leaf& leaf = leaves_[page / kPagesPerLeaf];
    leaf.fresh.set(page % kPagesPerLeaf);
    trust(leaf, page);
    if (sum != kNoSum && !leaf.sums) leaf.sums = std::make_unique<Sums>();
    if (leaf.sums) (*leaf.sums)[page % kPagesPerLeaf] = sum;
  }
  // It is nowhere, or where a commit refers to.
  void remove(Page page) {
    const auto leaf = leaves_.find(page / kPagesPerLeaf);
    if (leaf == leaves_.end()) return;
    leaf->second.fresh.reset(page % kPagesPerLeaf);
    trust(leaf->second, page);
  }
  void clear() {
    leaves_.clear();
    doubtful_ = 0;
  }
  // A sync failed.
  void doubt() {
    doubtful_ = 0;
    for (auto& [number, leaf] : leaves_) {
      leaf.doubtful = leaf.fresh;
      doubtful_ += leaf.doubtful.count();
    }
  }
  // Calls visit(page, sum) for each that is in doubt, in no order.
  template <class Visit>
  void for_each_doubtful(Visit visit) const {
    for (const auto& [number, leaf] : leaves_) {
      for (std::size_t i = 0; leaf.doubtful.any() && i < kPagesPerLeaf; ++i) {
        if (leaf.doubtful[i]) visit(number * kPagesPerLeaf + i, leaf.sums ? (*leaf.sums)[i] : kNoSum);
      }
    }
  }

 private:
  using Bits = std::bitset<kPagesPerLeaf>;
  using Sums = std::array<Sum, kPagesPerLeaf>;
  struct Leaf {
    Bits fresh;
    Bits doubtful;
    std::unique_ptr<Sums> sums;  // where one of them has one
  };
  [[nodiscard]] bool is_set(Page page, Bits Leaf::* bits) const {
    const auto leaf = leaves_.find(page / kPagesPerLeaf);
    return leaf != leaves_.end() && (leaf->second.*bits)[page % kPagesPerLeaf];
  }
  void trust(Leaf& leaf, Page page) {
    if (!leaf.doubtful[page % kPagesPerLeaf]) return;
    leaf.doubtful.reset(page % kPagesPerLeaf);
    --doubtful_;
  }

  std::unordered_map<std::uint64_t, Leaf> leaves_;
  std::uint64_t doubtful_ = 0;
};

}  // namespace farheap::segment
