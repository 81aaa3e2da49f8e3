// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/tree_writer.hpp"

namespace farheap::segment {

Status TreeWriter::put(const BlockWords& block, std::size_t level) {
  auto slot = writer_.put(block);
  if (!slot) return fail(std::move(slot.error()));
  if (above_.size() == level) above_.emplace_back();
  Level& above = above_[level];
  above.words[2 * above.entries] = SlotRef(*slot, epoch_).word();
  above.words[2 * above.entries + 1] = BlockTree::checksum_of(block);
  if (++above.entries < BlockTree::kFanOut) return {};
  const BlockWords full = std::exchange(above, {}).words;
  return put(full, level + 1);
}

// A level with one entry and nothing above it is none: the entry is the root.
Result<BlockTree::Root> TreeWriter::finish() {
  for (std::size_t level = 0; level < above_.size(); ++level) {
    const Level last = std::exchange(above_[level], {});
    if (level + 1 == above_.size() && last.entries == 1) {
      return BlockTree::Root{SlotRef(last.words[0]), last.words[1], level};
    }
    if (last.entries == 0) continue;
    if (Status status = put(last.words, level + 1); !status) return fail(std::move(status.error()));
  }
  return BlockTree::Root{};
}

std::uint64_t TreeWriter::blocks_of(std::uint64_t leaves) {
  std::uint64_t all = leaves;
  for (std::uint64_t level = leaves; level > 1; all += level) {
    level = (level + BlockTree::kFanOut - 1) / BlockTree::kFanOut;
  }
  return all;
}

Status ListWriter::append(SlotRef ref) {
  leaf_[count_++ % leaf_.size()] = ref.word();
  return count_ % leaf_.size() == 0 ? tree_.add(std::exchange(leaf_, {})) : Status{};
}

Result<ListWriter::Root> ListWriter::finish() {
  if (count_ % leaf_.size() != 0) {
    if (Status status = tree_.add(leaf_); !status) return fail(std::move(status.error()));
  }
  auto root = tree_.finish();
  if (!root) return fail(std::move(root.error()));
  return Root{*root, count_};
}

}  // namespace farheap::segment
