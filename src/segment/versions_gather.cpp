// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cleaner of a kept segment. A commit of scattered changes writes them in one piece, wherever free slots are, and
// so tears apart what lay in a row; here neighbours are brought together again, a leaf of the map (2 MiB) at a time.
// What the pages hold stays as it is: only where they rest changes, and that is a part of the next commit. The source
// of the idea: Rosenblum and Ousterhout, "The Design and Implementation of a Log-Structured File System", section 3.
#include <algorithm>

#include "base/mutex.hpp"
#include "segment/slot_io.hpp"
#include "segment/versions.hpp"

namespace farheap::segment {
namespace {

// Pages lie well when they come in runs of so many on average. Free slots are found in runs of 32 at the least.
constexpr std::uint64_t kGoodRun = 16;

struct Lie {
  std::uint64_t pages = 0;
  std::uint64_t runs = 0;
  [[nodiscard]] bool is_scattered() const { return runs > 1 + pages / kGoodRun; }
};

Lie lie_of(const BlockWords& words) {
  Lie lie;
  std::uint64_t next = 0;  // slot, if the page goes on with the run
  for (const std::uint64_t word : words) {
    const SlotRef at(word);
    if (at.is_nowhere()) continue;
    ++lie.pages;
    lie.runs += at.slot() != next;
    next = at.slot() + 1;
  }
  return lie;
}

}  // namespace

Result<std::vector<std::uint64_t>> Versions::scattered_leaves() {
  base::LockGuard writing(writing_);
  const BlockTree map(store_, "the map of the heap", last_commit().map);
  std::vector<std::uint64_t> leaves;
  const Status read = map.for_each_block([&](const BlockTree::Visited& block) {
    if (block.words != nullptr && lie_of(*block.words).is_scattered()) leaves.push_back(block.number);
    return true;
  });
  if (!read) return fail(read.error());
  std::ranges::sort(leaves);
  return leaves;
}

Status Versions::trim() {
  base::LockGuard writing(writing_);
  Result<std::vector<SlotSpace::Run>> runs;
  {
    base::LockGuard lock(mutex_);
    runs = space_.free_runs();
  }
  if (!runs) return fail(std::move(runs.error()));
  for (const SlotSpace::Run run : *runs) {
    if (Status erased = store_.erase(run.first, run.count); !erased) return erased;
  }
  return {};
}

Result<std::uint64_t> Versions::gather(std::uint64_t leaf, std::byte* buffer) {
  base::LockGuard writing(writing_);
  return gather_leaf(leaf, buffer);
}

Result<bool> Versions::gather_one_of_lately(std::byte* buffer) {
  base::LockGuard writing(writing_);
  std::uint64_t leaf = 0;
  bool is_shared = false;
  {
    base::LockGuard lock(mutex_);
    if (written_lately_.empty()) return false;
    leaf = *written_lately_.begin();
    written_lately_.erase(written_lately_.begin());
    if (Status status = load_snapshots(); !status) return fail(std::move(status.error()));
    auto words = map_.find(leaf);
    if (!words) return fail(std::move(words.error()));
    for (std::size_t i = 0; *words != nullptr && !snapshots_.empty() && i < kPagesPerLeaf; ++i) {
      const SlotRef at((**words)[i]);
      is_shared = is_shared || (!at.is_nowhere() && at.epoch() <= snapshots_.back().epoch);
    }
  }
  if (is_shared) return true;
  auto moved = gather_leaf(leaf, buffer);
  if (!moved) return fail(std::move(moved.error()));
  base::LockGuard lock(mutex_);
  written_lately_.erase(leaf);  // by itself
  return true;
}

Result<std::uint64_t> Versions::gather_leaf(std::uint64_t leaf, std::byte* buffer) {
  base::LockGuard lock(mutex_);
  if (fresh_.any_doubtful()) return 0;  // what was lost would become what was written
  auto words = map_.find(leaf);
  if (!words) return fail(std::move(words.error()));
  if (*words == nullptr) return 0;
  const Lie before = lie_of(**words);
  if (!before.is_scattered()) return 0;

  std::vector<Placed> pages;
  std::vector<SlotRead> reads;
  for (std::size_t i = 0; i < kPagesPerLeaf; ++i) {
    const SlotRef from((**words)[i]);
    if (from.is_nowhere()) continue;
    std::byte* const at = buffer + pages.size() * base::kPageBytes;
    pages.push_back({leaf * kPagesPerLeaf + i, at, FreshPages::kNoSum, from, SlotRef()});
    append(reads, from.slot(), at, longest_read(store_));
  }
  {
    const base::Without unlocked(mutex_);
    if (Status read = read_slots(store_, reads); !read) return fail(std::move(read.error()));
    for (Placed& one : pages) one.sum = FreshPages::sum_of(one.bytes);
  }

  raise_fence();
  Status status = take_slots(pages);
  std::uint64_t runs = 0;
  for (std::size_t i = 0; i < pages.size(); ++i) runs += i == 0 || pages[i].to.slot() != pages[i - 1].to.slot() + 1;
  const bool is_better = status && runs * 2 <= before.runs;
  if (is_better) {
    const base::Without unlocked(mutex_);
    status = put_pages(pages);
  }
  if (status && is_better) {
    status = note(pages);
  } else {
    give_back(pages);
  }
  if (!status) return fail(std::move(status.error()));
  return is_better ? pages.size() : 0;
}

}  // namespace farheap::segment
