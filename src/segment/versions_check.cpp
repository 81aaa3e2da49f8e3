// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Are the books of the last commit whole, and do they agree? Every slot that is referred to is taken, and every slot
// that is taken is referred to.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>

#include "base/mutex.hpp"
#include "segment/slot_io.hpp"
#include "segment/versions.hpp"
#include "store/aligned_buffer.hpp"

namespace farheap::segment {
namespace {

constexpr auto kSpace = "the map of free space";

class Checker {
 public:
  Checker(Store& store, const Superblock& content) : store_(store), content_(content) {}

  [[nodiscard]] Status use_map(const char* name, const BlockTree::Root& root, std::uint64_t pages) {
    std::uint64_t found = 0;
    Status status = use_blocks(name, root, [&](const BlockTree::Visited& leaf) {
      for (const std::uint64_t word : *leaf.words) {
        const SlotRef at(word);
        if (at.is_nowhere()) continue;
        ++found;
        use(name, at);
      }
    });
    if (found != pages) wrong(name, fmt::format("{} pages instead of {}", found, pages));
    return settled(std::move(status));
  }

  [[nodiscard]] Status use_books(const char* name, const BlockTree::Root& root) {
    return settled(use_blocks(name, root, [](const BlockTree::Visited&) {}));
  }

  // What is referred to, each slot once and in order.
  [[nodiscard]] Status read_all(const Versions::CheckProgress& progress) {
    std::vector<std::uint64_t> leaves;
    for (const auto& [leaf, words] : used_) leaves.push_back(leaf);
    std::ranges::sort(leaves);
    const store::AlignedBuffer buffer(kAtOnce * base::kPageBytes);
    if (!buffer.is_there()) return fail(ErrorCode::kNoSpace, "cannot check", store_.describe(), "no memory");
    std::vector<SlotRead> runs;
    std::size_t waiting = 0;
    std::uint64_t done = 0;
    const auto read = [&]() -> Status {
      if (Status status = read_slots(store_, runs); !status) return status;
      done += std::exchange(waiting, 0);
      runs.clear();
      if (progress) progress(std::min(done, content_.taken_slots));
      return {};
    };
    for (const std::uint64_t leaf : leaves) {
      for (std::uint64_t i = 0; i < SlotSpace::kLeafSlots; ++i) {
        const std::uint64_t slot = leaf * SlotSpace::kLeafSlots + i;
        if ((used_[leaf][SlotSpace::word_of(slot)] & SlotSpace::bit_of(slot)) == 0) continue;
        append(runs, slot, buffer.part(waiting * base::kPageBytes, base::kPageBytes).data(), longest_read(store_));
        if (++waiting < kAtOnce) continue;
        if (Status status = read(); !status) return status;
      }
    }
    return read();
  }

  // After all else.
  [[nodiscard]] Status compare_space() {
    std::unordered_map<std::uint64_t, BlockWords> marked;
    Status status = use_blocks(kSpace, content_.space,
                               [&](const BlockTree::Visited& leaf) { marked.emplace(leaf.number, *leaf.words); });
    if (!status) return status;
    std::uint64_t number = 0;
    for (auto& [leaf, words] : marked) {
      for (const std::uint64_t word : words) number += static_cast<std::uint64_t>(std::popcount(word));
      compare_leaf(leaf, words);
    }
    for (const auto& [leaf, words] : used_) {
      if (!marked.contains(leaf)) compare_leaf(leaf, {});
    }
    if (number != content_.taken_slots) {
      wrong(kSpace, fmt::format("{} slots are taken, not {}", number, content_.taken_slots));
    }
    return settled(std::move(status));
  }

 private:
  static constexpr std::size_t kAtOnce = 1024;

  template <class Visit>
  Status use_blocks(const char* name, const BlockTree::Root& root, Visit visit) {
    const BlockTree tree(store_, name, root);
    std::uint64_t blocks = 0;
    return tree.for_each_block([&](const BlockTree::Visited& block) {
      use(name, block.at);
      if (++blocks > content_.end_slot) wrong(name, "it has more blocks than the store");
      if (block.words != nullptr) visit(block);
      return wrong_.empty();
    });
  }

  void use(const char* name, SlotRef at) {
    if (at.slot() < kSuperblocks || at.slot() >= content_.end_slot) {
      wrong(name, fmt::format("slot {} is beyond the end, {}", at.slot(), content_.end_slot));
    } else {
      used_[at.slot() / SlotSpace::kLeafSlots][SlotSpace::word_of(at.slot())] |= SlotSpace::bit_of(at.slot());
    }
  }
  void compare_leaf(std::uint64_t leaf, const BlockWords& marked) {
    const auto found = used_.find(leaf);
    for (std::size_t i = 0; i < marked.size(); ++i) {
      const std::uint64_t used = found == used_.end() ? 0 : found->second[i];
      if (used == marked[i]) continue;
      const auto bit = static_cast<unsigned>(std::countr_zero(used ^ marked[i]));
      wrong(kSpace, fmt::format("slot {} is {}", leaf * SlotSpace::kLeafSlots + i * 64 + bit,
                                (used >> bit & 1) != 0 ? "in use and marked as free" : "taken by nobody"));
    }
  }
  void wrong(const char* name, std::string why) {
    if (wrong_.empty()) wrong_ = fmt::format("{}: {}", name, why);
  }
  Status settled(Status status) {
    if (!status || wrong_.empty()) return status;
    return fail(ErrorCode::kCorrupt, "the heap's books are wrong", store_.describe(), wrong_,
                "`farheap heap check --repair` makes it anew out of the versions that are whole");
  }

  Store& store_;
  const Superblock& content_;
  std::unordered_map<std::uint64_t, BlockWords> used_;  // by leaf of the map of free space, as there
  std::string wrong_;
};

}  // namespace

Status Versions::check(bool data, const CheckProgress& progress) {
  base::LockGuard writing(writing_);
  base::LockGuard lock(mutex_);
  if (Status status = load_snapshots(); !status) return status;
  Checker checker(store_, content_);
  if (Status status = checker.use_map("the map of the heap", content_.map, content_.pages); !status) return status;
  if (Status status = checker.use_books("dead slots", content_.dead); !status) return status;
  if (Status status = checker.use_books("the table of snapshots", content_.snapshots); !status) return status;
  for (const Snapshot& snapshot : snapshots_) {
    if (Status status = checker.use_map(snapshot.name, snapshot.map, snapshot.pages); !status) return status;
    if (Status status = checker.use_books(snapshot.name, snapshot.dead.tree); !status) return status;
  }
  Status status = checker.compare_space();
  return status && data ? checker.read_all(progress) : status;
}

}  // namespace farheap::segment
