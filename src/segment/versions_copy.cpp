// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Three maps are walked at once. Where the source's map has the slot of the version before, the target gets the slot
// that it has for it; so what two versions share is read once and stays shared. Slots get the epoch of the version they
// come with, counted anew, and what a version does not have any more goes to its list of dead slots (slot_ref.hpp).
#include "segment/versions_copy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/random_number.hpp"

namespace farheap::segment {

struct VersionsCopy::Blocks {
  alignas(base::kPageBytes) BlockWords before{}, copied{}, now{}, made{};
  std::array<Branch, BlockTree::kFanOut> children;  // above the leaves
};

VersionsCopy::VersionsCopy(Store& source, const Superblock& like, Store& target, Progress progress)
    : source_(source), target_(target), like_(like), progress_(std::move(progress)) {
  for (std::uint64_t level = 0; level <= BlockTree::kMostLevels; ++level) {
    blocks_.push_back(std::make_unique<Blocks>());
  }
}
VersionsCopy::~VersionsCopy() = default;

Result<std::unique_ptr<VersionsCopy>> VersionsCopy::begin(Store& source, const Superblock& like, Store& target,
                                                          Progress progress, std::uint64_t fence) {
  auto unfinished =
      Versions::create(target, {.base_address = like.base_address, .capacity_pages = like.capacity_pages});
  if (!unfinished) return fail(std::move(unfinished.error()));
  auto found = read_superblock(target);
  if (!found) return fail(std::move(found.error()));
  std::unique_ptr<VersionsCopy> made(new VersionsCopy(source, like, target, std::move(progress)));
  made->superblocks_ = found->versions;
  made->first_slot_ = std::max(found->content.end_slot, fence);
  made->writer_ = std::make_unique<SlotWriter>(source, target, made->first_slot_);
  return made;
}

Status VersionsCopy::add(const Snapshot& snapshot) {
  const std::uint64_t begin = writer_->next();
  ListWriter::Root dead;
  auto map = copy_map(snapshot.map, snapshot.pages, dead);
  if (!map) {
    writer_->go_back_to(begin);
    return fail(std::move(map.error()));
  }
  Snapshot record = snapshot;
  record.epoch = snapshots_.size();
  record.map = *map;
  record.dead = {dead.tree, dead.count};
  snapshots_.push_back(record);
  before_ = snapshot.map;
  written_ = *map;
  pages_ = snapshot.pages;
  return {};
}

Status VersionsCopy::finish(const Newest& newest) {
  const std::uint64_t begin = writer_->next();
  ListWriter::Root dead;
  auto map = copy_map(newest.map, newest.pages, dead);
  if (!map) {
    writer_->go_back_to(begin);
    return fail(std::move(map.error()));
  }
  auto table = write_snapshots();
  if (!table) return fail(std::move(table.error()));
  Superblock content = like_;
  content.id = newest.id;
  if (content.id != like_.id) content.origin = like_.line();
  content.writer = base::random_number();
  content.commit = newest.commit;
  content.time_ns = newest.time_ns;
  content.pages = newest.pages;
  content.epoch = snapshots_.size();
  content.map = *map;
  content.snapshots = *table;
  content.snapshot_count = snapshots_.size();
  content.dead = dead.tree;
  content.dead_count = dead.count;
  Status status = write_space(content);
  if (status) status = writer_->flush();
  return status ? write_first_superblocks(target_, content, superblocks_) : status;
}

// The map of the next version in the target.
Result<BlockTree::Root> VersionsCopy::copy_map(const BlockTree::Root& map, std::uint64_t pages,
                                               ListWriter::Root& dead) {
  const auto branch = [](const BlockTree::Root& root) { return Branch{root.at, root.checksum, root.levels}; };
  const std::uint64_t before = pages_;
  loaded_ = 0;
  ListWriter list(*writer_, snapshots_.size());
  dead_ = &list;
  auto made = copy_below({branch(before_), branch(written_), branch(map)}, std::max(map.levels, before_.levels));
  const std::uint64_t found = std::exchange(pages_, before);
  if (!made) return fail(std::move(made.error()));
  if (found != pages) {
    return fail(ErrorCode::kCorrupt, "cannot copy the heap", source_.describe(),
                fmt::format("a map has {} pages instead of {}", found, pages));
  }
  auto ended = list.finish();
  if (!ended) return fail(std::move(ended.error()));
  dead = *ended;
  if (Status status = writer_->flush(); !status) return fail(std::move(status.error()));
  return made->is_none() ? BlockTree::Root{} : BlockTree::Root{made->at, made->checksum, made->level};
}

// The part of the new map in the target.
Result<VersionsCopy::Branch> VersionsCopy::copy_below(const Three& branches, std::uint64_t level) {
  if (branches.now.at == branches.before.at) return branches.copied;
  Blocks& blocks = *blocks_[level];
  if (Status status = load(branches, level, blocks); !status) return fail(std::move(status.error()));
  Status status = level == 0 ? copy_leaf(blocks) : copy_entries(branches, blocks, level);
  // What was lifted to this level was no block.
  if (status && branches.copied.level == level) status = kill(branches.copied.at);
  if (!status) return fail(std::move(status.error()));
  if (std::ranges::all_of(blocks.made, [](std::uint64_t word) { return word == 0; })) return Branch{};
  auto slot = writer_->put(blocks.made);
  if (!slot) return fail(std::move(slot.error()));
  return Branch{SlotRef(*slot, snapshots_.size()), BlockTree::checksum_of(blocks.made), level};
}

Status VersionsCopy::load(const Three& branches, std::uint64_t level, Blocks& blocks) {
  const auto read = [&](const Branch& branch, BlockWords& into, auto from_store) -> Status {
    into = {};
    if (branch.is_none()) return {};
    if (branch.level == level) return from_store(branch, into);
    into[0] = branch.at.word();
    into[1] = branch.checksum;
    return {};
  };
  const auto from_source = [&](const Branch& branch, BlockWords& into) {
    return BlockTree::read_block(source_, "a map of the heap", branch.at, branch.checksum, into);
  };
  const auto from_target = [&](const Branch& branch, BlockWords& into) {
    return writer_->read(branch.at.slot(), into);
  };
  // A map that leads back to itself would have no end.
  if (++loaded_ > like_.end_slot * (BlockTree::kMostLevels + 1)) {
    return fail(ErrorCode::kCorrupt, "cannot copy the heap", source_.describe(),
                "a map has more blocks than the store");
  }
  blocks.made = {};
  Status status = read(branches.now, blocks.now, from_source);
  if (status) status = read(branches.before, blocks.before, from_source);
  if (status) status = read(branches.copied, blocks.copied, from_target);
  return status;
}

Status VersionsCopy::copy_leaf(Blocks& blocks) {
  for (std::size_t i = 0; i < blocks.now.size(); ++i) {
    const SlotRef now(blocks.now[i]), before(blocks.before[i]), copied(blocks.copied[i]);
    if (now == before) {
      blocks.made[i] = copied.word();
      continue;
    }
    if (!before.is_nowhere()) {
      --pages_;
      if (Status status = kill(copied); !status) return status;
    }
    if (now.is_nowhere()) continue;
    ++pages_;
    auto slot = writer_->fetch(now.slot());
    if (!slot) return fail(std::move(slot.error()));
    blocks.made[i] = SlotRef(*slot, snapshots_.size()).word();
    ++copied_;
  }
  return progress_ ? progress_(copied_) : Status{};
}

Status VersionsCopy::copy_entries(const Three& branches, Blocks& blocks, std::uint64_t level) {
  const auto child = [&](const Branch& branch, const BlockWords& words, std::size_t i) {
    return Branch{SlotRef(words[2 * i]), words[2 * i + 1], branch.level == level ? level - 1 : branch.level};
  };
  for (std::size_t i = 0; i < BlockTree::kFanOut; ++i) {
    const Three below{child(branches.before, blocks.before, i), child(branches.copied, blocks.copied, i),
                      child(branches.now, blocks.now, i)};
    auto made = copy_below(below, level - 1);
    if (!made) return fail(std::move(made.error()));
    if (made->is_none()) continue;
    if (made->level != level - 1) {
      return fail(ErrorCode::kCorrupt, "cannot copy the heap", source_.describe(),
                  fmt::format("block {} is at two places of its maps", below.now.at.slot()));
    }
    blocks.made[2 * i] = made->at.word();
    blocks.made[2 * i + 1] = made->checksum;
  }
  return {};
}

Result<BlockTree::Root> VersionsCopy::write_snapshots() {
  TreeWriter tree(*writer_, snapshots_.size());
  constexpr std::size_t kPerLeaf = sizeof(BlockWords) / sizeof(Snapshot);
  for (std::size_t first = 0; first < snapshots_.size(); first += kPerLeaf) {
    BlockWords leaf{};
    std::memcpy(leaf.data(), &snapshots_[first], std::min(kPerLeaf, snapshots_.size() - first) * sizeof(Snapshot));
    if (Status status = tree.add(leaf); !status) return fail(std::move(status.error()));
  }
  return tree.finish();
}

// All slots from the first one on are taken, by the blocks of the map of free space, too.
Status VersionsCopy::write_space(Superblock& content) {
  std::uint64_t leaves = 0, end = writer_->next();
  while (leaves * SlotSpace::kLeafSlots < end) end = writer_->next() + TreeWriter::blocks_of(++leaves);
  TreeWriter tree(*writer_, content.epoch);
  for (std::uint64_t first = 0; first < leaves * SlotSpace::kLeafSlots; first += SlotSpace::kLeafSlots) {
    BlockWords leaf{};
    const std::uint64_t begin = std::max(first, first_slot_);
    for (std::uint64_t slot = begin; slot < std::min(first + SlotSpace::kLeafSlots, end); ++slot) {
      leaf[SlotSpace::word_of(slot)] |= SlotSpace::bit_of(slot);
    }
    if (Status status = tree.add(leaf); !status) return status;
  }
  auto root = tree.finish();
  if (!root) return fail(std::move(root.error()));
  content.space = *root;
  content.end_slot = end;
  content.taken_slots = end - first_slot_;
  return {};
}

}  // namespace farheap::segment
