// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/slot_space.hpp"

#include <algorithm>
#include <bit>

#include "segment/slot_io.hpp"
#include "segment/superblock.hpp"

namespace farheap::segment {
namespace {

// The waiting batches: those of the last commit but one are still part of a superblock's state.
constexpr std::size_t kHeldCommits = 1;

}  // namespace

SlotSpace::SlotSpace(Store& store, BlockTree::Root root, std::uint64_t end_slot, std::uint64_t taken,
                     std::uint64_t commit)
    : tree_(store, "the map of free space", root), end_(end_slot), taken_(taken), opened_at_(commit) {}

Status SlotSpace::mark(std::uint64_t slot, bool taken) {
  auto words = tree_.change(slot / kLeafSlots);
  if (!words) return fail(std::move(words.error()));
  std::uint64_t& word = (**words)[word_of(slot)];
  word = taken ? word | bit_of(slot) : word & ~bit_of(slot);
  taken_ = taken ? taken_ + 1 : taken_ - 1;
  return {};
}

Status SlotSpace::mark(Run run) {
  for (std::uint64_t slot = run.first; slot < run.first + run.count; ++slot) {
    if (Status status = mark(slot, true); !status) return status;
  }
  return {};
}

void SlotSpace::hold(std::uint64_t slot, bool on) {
  auto& leaf = held_[slot / kLeafSlots];
  if (!leaf) leaf = std::make_unique<BlockWords>();
  std::uint64_t& word = (*leaf)[word_of(slot)];
  word = on ? word | bit_of(slot) : word & ~bit_of(slot);
  held_count_ = on ? held_count_ + 1 : held_count_ - 1;
}

// Which of the free ones lie behind the fence is not known: it is enough if they could.
bool SlotSpace::is_worth_searching() const {
  const std::uint64_t behind = end_ > fence_ ? end_ - fence_ : 0;
  return std::min(end_ - kSuperblocks - taken_ - held_count_, behind) > behind / kWorthSearching;
}

void SlotSpace::set_fence(std::uint64_t fence) { fence_ = std::max(fence_, fence); }

Result<SlotSpace::Run> SlotSpace::take(std::uint64_t wanted) {
  const std::uint64_t least = std::min(wanted, kLeastRun);
  if (may_reuse_ && is_worth_searching() && least < shortest_missing_) {
    auto found = find(wanted, least);
    if (!found) return found;
    if (found->count != 0) {
      if (Status status = mark(*found); !status) return fail(std::move(status.error()));
      cursor_ = found->first + found->count;
      return found;
    }
    shortest_missing_ = least;
  }
  const std::uint64_t first = std::max(end_, fence_);
  const Run fresh{first, std::min(wanted, SlotRef::kSlots - std::min(first, SlotRef::kSlots))};
  if (fresh.count == 0) {
    return fail(ErrorCode::kNoSpace, "cannot write a page", "the heap", "all numbers of its store are used up");
  }
  if (Status status = mark(fresh); !status) return fail(std::move(status.error()));
  end_ = fresh.first + fresh.count;
  return fresh;
}

// Once around behind the fence, from the cursor on.
Result<SlotSpace::Run> SlotSpace::find(std::uint64_t wanted, std::uint64_t least) {
  if (cursor_ >= end_ || cursor_ < fence_) cursor_ = fence_;
  const std::uint64_t first_leaf = fence_ / kLeafSlots;
  const std::uint64_t leaves = (end_ + kLeafSlots - 1) / kLeafSlots - first_leaf;
  for (std::uint64_t i = 0; i <= leaves; ++i) {
    const std::uint64_t leaf = first_leaf + (cursor_ / kLeafSlots - first_leaf + i) % leaves;
    const std::uint64_t first = std::max(leaf * kLeafSlots, fence_);
    auto taken = tree_.find(leaf);
    if (!taken) return fail(std::move(taken.error()));
    const auto held = held_.find(leaf);
    const Run run = find_in_leaf(*taken, held == held_.end() ? nullptr : held->second.get(), i == 0 ? cursor_ : first,
                                 std::min((leaf + 1) * kLeafSlots, end_), wanted, least);
    if (run.count != 0) return run;
  }
  return Run{};
}

SlotSpace::Run SlotSpace::find_in_leaf(const BlockWords* taken, const BlockWords* held, std::uint64_t from,
                                       std::uint64_t end, std::uint64_t wanted, std::uint64_t least) const {
  Run run;
  for (std::uint64_t slot = from; slot < end && run.count < wanted; ++slot) {
    const std::size_t at = word_of(slot);
    const std::uint64_t used = (taken != nullptr ? (*taken)[at] : 0) | (held != nullptr ? (*held)[at] : 0);
    const bool is_free = (used & bit_of(slot)) == 0 && slot >= kSuperblocks;
    if (is_free) {
      if (run.count++ == 0) run.first = slot;
      continue;
    }
    if (run.count >= least) return run;
    run.count = 0;
    if (used == ~std::uint64_t{0}) slot |= 63;  // the next word
  }
  return run.count >= least ? run : Run{};
}

Result<std::vector<SlotSpace::Run>> SlotSpace::free_runs() {
  std::vector<Run> runs;
  if (!may_reuse_) return runs;
  for (std::uint64_t first = 0; first < end_; first += kLeafSlots) {
    auto taken = tree_.find(first / kLeafSlots);
    if (!taken) return fail(std::move(taken.error()));
    const auto held = held_.find(first / kLeafSlots);
    const std::uint64_t end = std::min(first + kLeafSlots, end_);
    for (std::uint64_t from = first; from < end;) {
      const Run run =
          find_in_leaf(*taken, held == held_.end() ? nullptr : held->second.get(), from, end, kLeafSlots, kLeastHole);
      if (run.count == 0) break;
      runs.push_back(run);
      from = run.first + run.count;
    }
  }
  runs.push_back({end_, SlotRef::kSlots - end_});
  return runs;
}

Status SlotSpace::give_back(std::uint64_t slot) {
  shortest_missing_ = kAll;
  return mark(slot, false);
}

Status SlotSpace::release(std::uint64_t slot) {
  if (Status status = mark(slot, false); !status) return status;
  hold(slot, true);
  released_.push_back(slot);
  return {};
}

Status SlotSpace::give_up() {
  for (; released_.size() > released_before_; released_.pop_back()) {
    hold(released_.back(), false);
    if (Status status = mark(released_.back(), true); !status) return status;
  }
  return {};
}

std::vector<SlotSpace::Run> SlotSpace::finish(std::uint64_t commit, std::uint64_t oldest_read) {
  std::vector<Run> runs;
  waiting_.push_back({commit, std::exchange(released_, {})});
  while (waiting_.size() > kHeldCommits && waiting_.front().commit <= oldest_read) {
    auto& slots = waiting_.front().slots;
    std::sort(slots.begin(), slots.end());
    for (const std::uint64_t slot : slots) {
      hold(slot, false);
      if (!runs.empty() && runs.back().first + runs.back().count == slot) {
        ++runs.back().count;
      } else {
        runs.push_back({slot, 1});
      }
    }
    waiting_.pop_front();
  }
  if (!runs.empty()) shortest_missing_ = kAll;
  settle(oldest_read);
  return runs;
}

}  // namespace farheap::segment
