// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block above the leaves has 256 entries of two words: the slot of the block below (SlotRef; 0: none) and its XXH3.
#include "segment/block_tree.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <cassert>

#include "segment/slot_io.hpp"

namespace farheap::segment {
namespace {

// Which entry of a block at `level` leads to the leaf.
unsigned entry_for(std::uint64_t leaf, std::uint64_t level) {
  return static_cast<unsigned>(leaf >> (BlockTree::kFanOutShift * (level - 1)) & (BlockTree::kFanOut - 1));
}

}  // namespace

struct BlockTree::Node {
  alignas(base::kPageBytes) BlockWords words{};
  SlotRef at;            // nowhere: not written yet
  SlotRef before;        // while it is placed: where it was
  bool changed = false;  // since it was written; so are all above it then
  bool placed = false;
  std::vector<std::unique_ptr<Node>> children;  // those in memory; empty in leaves

  [[nodiscard]] SlotRef entry(unsigned index) const { return SlotRef(words[std::size_t{2} * index]); }
  [[nodiscard]] std::uint64_t checksum(unsigned index) const { return words[std::size_t{2} * index + 1]; }
};

BlockTree::BlockTree(Store& store, const char* name, Root root)
    : store_(&store), name_(name), root_(root), levels_(root.levels) {}
BlockTree::~BlockTree() = default;
BlockTree::BlockTree(BlockTree&&) noexcept = default;
BlockTree& BlockTree::operator=(BlockTree&&) noexcept = default;

bool BlockTree::has_changed() const { return top_ && top_->changed; }

std::uint64_t BlockTree::checksum_of(const BlockWords& words) { return XXH3_64bits(words.data(), sizeof words); }

Status BlockTree::read_block(Store& store, const char* name, SlotRef at, std::uint64_t checksum, BlockWords& into) {
  const SlotRead run{at.slot(), 1, reinterpret_cast<std::byte*>(into.data())};
  if (Status status = read_slots(store, {&run, 1}); !status) return status;
  if (checksum_of(into) == checksum) return {};
  return fail(ErrorCode::kCorrupt, fmt::format("cannot read {}", name), store.describe(),
              fmt::format("block {} does not have the checksum that was written with it", at.slot()),
              "farheap heap check tells what else is damaged");
}

Status BlockTree::load(Node& node, SlotRef at, std::uint64_t checksum) const {
  if (Status status = read_block(*store_, name_, at, checksum, node.words); !status) return status;
  node.at = at;
  return {};
}

Result<const BlockWords*> BlockTree::find(std::uint64_t leaf) {
  auto node = descend(leaf, false);
  if (!node) return fail(std::move(node.error()));
  return *node == nullptr ? nullptr : &(*node)->words;
}

Result<BlockWords*> BlockTree::change(std::uint64_t leaf) {
  auto node = descend(leaf, true);
  if (!node) return fail(std::move(node.error()));
  return &(*node)->words;
}

// What was the whole tree becomes the first entry of a block above it.
void BlockTree::grow_to(std::uint64_t leaf) {
  while (leaf >> (BlockTree::kFanOutShift * levels_) != 0) {
    assert(levels_ < kMostLevels);
    ++levels_;
    if (!top_) continue;
    auto above = std::make_unique<Node>();
    above->changed = true;
    above->words[0] = top_->at.word();
    above->words[1] = root_.checksum;
    above->children.resize(BlockTree::kFanOut);
    above->children[0] = std::move(top_);
    top_ = std::move(above);
  }
}

// The node of the leaf; nullptr if there is none and none is to be made.
Result<BlockTree::Node*> BlockTree::descend(std::uint64_t leaf, bool to_change) {
  if (leaf >> (BlockTree::kFanOutShift * levels_) != 0 && !to_change) return nullptr;
  if (!top_) {
    if (root_.at.is_nowhere() && !to_change) return nullptr;
    auto top = std::make_unique<Node>();
    if (!root_.at.is_nowhere()) {
      if (Status status = load(*top, root_.at, root_.checksum); !status) return fail(std::move(status.error()));
    }
    if (levels_ != 0) top->children.resize(BlockTree::kFanOut);
    top_ = std::move(top);
  }
  grow_to(leaf);
  Node* node = top_.get();
  if (to_change) node->changed = true;
  for (std::uint64_t level = levels_; level != 0 && node != nullptr; --level) {
    auto below = child(*node, level, entry_for(leaf, level), to_change);
    if (!below) return below;
    node = *below;
  }
  return node;
}

Result<BlockTree::Node*> BlockTree::child(Node& node, std::uint64_t level, unsigned index, bool to_change) {
  auto& below = node.children[index];
  if (!below) {
    if (node.entry(index).is_nowhere() && !to_change) return nullptr;
    auto made = std::make_unique<Node>();
    if (!node.entry(index).is_nowhere()) {
      Status status = load(*made, node.entry(index), node.checksum(index));
      if (!status) return fail(std::move(status.error()));
    }
    if (level > 1) made->children.resize(BlockTree::kFanOut);
    below = std::move(made);
  }
  if (to_change) below->changed = true;
  return below.get();
}

Result<bool> BlockTree::place(SlotSource& source) {
  return has_changed() ? place_below(*top_, source) : Result<bool>(false);
}

// `source` may change other leaves of this tree meanwhile: they are found now, or by the next call.
Result<bool> BlockTree::place_below(Node& node, SlotSource& source) {
  bool any = false;
  for (unsigned i = 0; i < node.children.size(); ++i) {
    if (!node.children[i] || !node.children[i]->changed) continue;
    auto below = place_below(*node.children[i], source);
    if (!below) return below;
    any = any || *below;
  }
  if (node.placed) return any;
  auto at = source.take();
  if (!at) return fail(std::move(at.error()));
  node.before = std::exchange(node.at, *at);
  node.placed = true;
  if (!node.before.is_nowhere()) {
    if (Status status = source.replaced(node.before); !status) return fail(std::move(status.error()));
  }
  return true;
}

BlockTree::Root BlockTree::seal(std::vector<Sealed>& blocks) {
  if (!has_changed()) return root_;
  const std::uint64_t checksum = seal_below(*top_, blocks);
  sealed_ = {top_->at, checksum, levels_};
  return sealed_;
}

// The checksum of the node, after those below it have theirs.
std::uint64_t BlockTree::seal_below(Node& node, std::vector<Sealed>& blocks) {
  assert(node.placed);
  for (unsigned i = 0; i < node.children.size(); ++i) {
    Node* below = node.children[i].get();
    if (below == nullptr || !below->changed) continue;
    node.words[std::size_t{2} * i + 1] = seal_below(*below, blocks);
    node.words[std::size_t{2} * i] = below->at.word();
  }
  blocks.push_back({node.at.slot(), &node.words});
  return checksum_of(node.words);
}

void BlockTree::finish(bool written) {
  if (!has_changed()) return;
  if (written) root_ = sealed_;
  finish_below(*top_, written);
}

void BlockTree::finish_below(Node& node, bool written) {
  for (const auto& below : node.children) {
    if (below && below->changed) finish_below(*below, written);
  }
  if (written) node.changed = false;
  if (!written && node.placed) node.at = node.before;
  node.placed = false;
}

Status BlockTree::for_each_block(const Visit& visit) const {
  if (root_.at.is_nowhere()) return {};
  return visit_below(root_.at, root_.checksum, root_.levels, 0, visit);
}

Status BlockTree::visit_below(SlotRef at, std::uint64_t checksum, std::uint64_t level, std::uint64_t number,
                              const Visit& visit) const {
  auto node = std::make_unique<Node>();
  if (Status status = load(*node, at, checksum); !status) return status;
  if (!visit({at, level, number, level == 0 ? &node->words : nullptr}) || level == 0) return {};
  for (unsigned i = 0; i < BlockTree::kFanOut; ++i) {
    if (node->entry(i).is_nowhere()) continue;
    const std::uint64_t first = number + (std::uint64_t{i} << (BlockTree::kFanOutShift * (level - 1)));
    if (Status status = visit_below(node->entry(i), node->checksum(i), level - 1, first, visit); !status) return status;
  }
  return {};
}

}  // namespace farheap::segment
