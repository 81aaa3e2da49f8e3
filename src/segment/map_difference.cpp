// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/map_difference.hpp"

#include <algorithm>
#include <memory>
#include <vector>

namespace farheap::segment {
namespace {

// A place in a tree that has a block, or none. Where trees are of different heights, the lower one is thought to hang
// from further blocks above its top.
struct Place {
  SlotRef at;
  std::uint64_t checksum = 0;
  std::uint64_t level = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

struct alignas(base::kPageBytes) BlockContent {
  BlockWords words{};
};

class Side {
 public:
  explicit Side(const MapSide& map) : map_(map) {}
  [[nodiscard]] Place top() const { return {map_.map.at, map_.map.checksum, map_.map.levels}; }

  // nullptr: nothing is there, or it lies deeper. Blocks may be shared between places of a damaged tree, so they are
  // counted: otherwise a few of them could keep a reader busy for ever.
  [[nodiscard]] Result<std::unique_ptr<BlockContent>> load(const Place& place, std::uint64_t level) {
    if (place.at.is_nowhere() || place.level != level) return nullptr;
    if (++blocks_ > map_.end_slot) {
      return fail(ErrorCode::kCorrupt, "cannot compare versions", map_.store->describe(),
                  "a map has more blocks than the store", "`farheap heap check` tells what is damaged");
    }
    auto block = std::make_unique<BlockContent>();
    Status status = BlockTree::read_block(*map_.store, "the map of a version", place.at, place.checksum, block->words);
    if (!status) return fail(std::move(status.error()));
    return block;
  }

 private:
  MapSide map_;
  std::uint64_t blocks_ = 0;
};

Place below(const Place& place, const BlockContent* block, std::uint64_t level, std::uint64_t index) {
  if (block != nullptr) return {SlotRef(block->words[2 * index]), block->words[2 * index + 1], level - 1};
  return index == 0 && place.level < level ? place : Place{};
}

class Walk {
 public:
  Walk(const MapSide& a, const MapSide& b, const VisitDifferences& visit)
      : a_(a), b_(b), comparable_(a.store == b.store), visit_(visit) {}

  [[nodiscard]] Status run() {
    const Place a = a_.top(), b = b_.top();
    return from(a, b, std::max(a.at.is_nowhere() ? 0 : a.level, b.at.is_nowhere() ? 0 : b.level), 0);
  }

 private:
  [[nodiscard]] Status from(const Place& a, const Place& b, std::uint64_t level, std::uint64_t leaf) {
    if (a.at.is_nowhere() && b.at.is_nowhere()) return {};
    if (comparable_ && a == b) return {};
    auto block_a = a_.load(a, level);
    if (!block_a) return fail(std::move(block_a.error()));
    auto block_b = b_.load(b, level);
    if (!block_b) return fail(std::move(block_b.error()));
    if (level == 0) return leaves(block_a->get(), block_b->get(), leaf);
    for (std::uint64_t i = 0; i < BlockTree::kFanOut; ++i) {
      const std::uint64_t number = leaf + (i << (BlockTree::kFanOutShift * (level - 1)));
      const Place under_a = below(a, block_a->get(), level, i), under_b = below(b, block_b->get(), level, i);
      if (Status status = from(under_a, under_b, level - 1, number); !status) return status;
    }
    return {};
  }

  [[nodiscard]] Status leaves(const BlockContent* a, const BlockContent* b, std::uint64_t leaf) {
    std::vector<PageDifference> found;
    constexpr std::uint64_t kPages = std::tuple_size_v<BlockWords>;
    for (std::uint64_t i = 0; i < kPages; ++i) {
      const SlotRef at_a(a == nullptr ? 0 : a->words[i]), at_b(b == nullptr ? 0 : b->words[i]);
      if (at_a.is_nowhere() && at_b.is_nowhere()) continue;
      if (comparable_ && at_a == at_b) continue;
      found.push_back({leaf * kPages + i, at_a, at_b});
    }
    return found.empty() ? Status{} : visit_(found);
  }

  Side a_, b_;
  const bool comparable_;
  const VisitDifferences& visit_;
};

}  // namespace

Status for_each_difference(const MapSide& a, const MapSide& b, const VisitDifferences& visit) {
  return Walk(a, b, visit).run();
}

}  // namespace farheap::segment
