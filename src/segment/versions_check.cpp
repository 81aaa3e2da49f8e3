// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Are the books of the last commit whole, and do they agree? Every slot that is referred to is taken, and every slot
// that is taken is referred to.
#include <fmt/format.h>

#include "segment/versions.hpp"

namespace farheap::segment {
namespace {

class Checker {
 public:
  Checker(Store& store, const Superblock& content) : store_(store), content_(content), used_(content.end_slot) {
    for (std::uint64_t slot = 0; slot < kSuperblocks; ++slot) used_[slot] = true;
  }

  [[nodiscard]] Status use_map(const char* name, const BlockTree::Root& root, std::uint64_t pages) {
    std::uint64_t found = 0;
    Status status = use_blocks(name, root, [&](const BlockWords& words) {
      for (const std::uint64_t word : words) {
        const SlotRef at(word);
        if (at.is_nowhere()) continue;
        ++found;
        use(name, at);
      }
    });
    if (status && found != pages) wrong(name, fmt::format("{} pages instead of {}", found, pages));
    return settled(status);
  }

  [[nodiscard]] Status use_books(const char* name, const BlockTree::Root& root) {
    Status status = use_blocks(name, root, [](const BlockWords&) {});
    return settled(status);
  }

  // After all else.
  [[nodiscard]] Status compare_space(std::uint64_t taken) {
    constexpr auto kName = "the map of free space";
    std::vector<bool> marked(used_.size());
    std::uint64_t number = 0;
    const BlockTree tree(store_, kName, content_.space);
    Status status = tree.for_each_block([&](const BlockTree::Visited& block) {
      use(kName, block.at);
      for (std::uint64_t bit = 0; block.words != nullptr && bit < SlotSpace::kLeafSlots; ++bit) {
        if (((*block.words)[bit / 64] >> (bit % 64) & 1) == 0) continue;
        const std::uint64_t slot = block.number * SlotSpace::kLeafSlots + bit;
        ++number;
        if (slot < marked.size()) marked[slot] = true;
      }
      return true;
    });
    for (std::uint64_t slot = kSuperblocks; status && slot < used_.size(); ++slot) {
      if (used_[slot] == marked[slot]) continue;
      wrong(kName, fmt::format("slot {} is {}", slot, used_[slot] ? "in use and marked as free" : "taken by nobody"));
    }
    if (number != taken) wrong(kName, fmt::format("{} slots are taken, not {}", number, taken));
    return settled(status);
  }

 private:
  template <class Visit>
  Status use_blocks(const char* name, const BlockTree::Root& root, Visit visit) {
    const BlockTree tree(store_, name, root);
    return tree.for_each_block([&](const BlockTree::Visited& block) {
      use(name, block.at);
      if (block.words != nullptr) visit(*block.words);
      return true;
    });
  }

  void use(const char* name, SlotRef at) {
    if (at.slot() < kSuperblocks || at.slot() >= used_.size()) {
      wrong(name, fmt::format("slot {} is beyond the end, {}", at.slot(), used_.size()));
    } else {
      used_[at.slot()] = true;
    }
  }
  void wrong(const char* name, std::string why) {
    if (wrong_.empty()) wrong_ = fmt::format("{}: {}", name, why);
  }
  Status settled(Status status) {
    if (!status || wrong_.empty()) return status;
    return fail(ErrorCode::kCorrupt, "the heap's books are wrong", store_.describe(), wrong_);
  }

  Store& store_;
  const Superblock& content_;
  std::vector<bool> used_;
  std::string wrong_;
};

}  // namespace

Status Versions::check() {
  std::lock_guard lock(mutex_);
  if (Status status = load_snapshots(); !status) return status;
  Checker checker(store_, content_);
  if (Status status = checker.use_map("the map of the heap", content_.map, content_.pages); !status) return status;
  if (Status status = checker.use_books("dead slots", content_.dead); !status) return status;
  if (Status status = checker.use_books("the table of snapshots", content_.snapshots); !status) return status;
  for (const Snapshot& snapshot : snapshots_) {
    if (Status status = checker.use_map(snapshot.name, snapshot.map, snapshot.pages); !status) return status;
    if (Status status = checker.use_books(snapshot.name, snapshot.dead.tree); !status) return status;
  }
  return checker.compare_space(content_.taken_slots);
}

}  // namespace farheap::segment
