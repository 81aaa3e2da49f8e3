// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/slot_table.hpp"

#include "base/log.hpp"

namespace farheap::segment {

Result<SlotTable> SlotTable::make(std::uint64_t capacity, bool is_shared) {
  SlotTable table;
  const std::uint64_t groups = capacity / kGroupSlots;
  auto references = os::ReservedArray<std::atomic<std::uint16_t>>::make(groups * kGroupSlots, is_shared);
  auto states = os::ReservedArray<Group>::make(groups, is_shared);
  auto shared = os::ReservedArray<Shared>::make(1, is_shared);
  if (!references) return fail(std::move(references.error()));
  if (!states) return fail(std::move(states.error()));
  if (!shared) return fail(std::move(shared.error()));
  table.references_ = std::move(*references);
  table.groups_ = std::move(*states);
  table.shared_ = std::move(*shared);
  return table;
}

SlotGroup SlotTable::take_group(SlotGroup after) {
  const auto try_take = [&](SlotGroup group) {
    Group& one = groups_[group];
    // Only owners take slots of a group, so a group without owners and without used slots stays that way.
    std::uint16_t none = 0;
    if (one.used.load() != 0 || one.owners.load() != 0) return false;
    return one.owners.compare_exchange_strong(none, 1);
  };
  Shared& shared = shared_[0];
  if (after != kNoGroup && after + 1 < groups_.capacity() && try_take(after + 1)) return after + 1;
  std::uint32_t start = shared.lowest.load();
  for (SlotGroup group = start; group < groups_.capacity(); ++group) {
    if (!try_take(group)) continue;
    shared.lowest.compare_exchange_strong(start, group + 1);  // unless one became free meanwhile
    return group;
  }
  // One that became free behind the search is not in the hint.
  for (SlotGroup group = 0; group < start; ++group) {
    if (try_take(group)) return group;
  }
  return kNoGroup;
}

void SlotTable::share_group(SlotGroup group) { groups_[group].owners.fetch_add(1); }

void SlotTable::release_group(SlotGroup group) {
  if (groups_[group].owners.fetch_sub(1) == 1) may_be_taken(group);
}

void SlotTable::may_be_taken(SlotGroup group) {
  std::uint32_t lowest = shared_[0].lowest.load();
  while (group < lowest && !shared_[0].lowest.compare_exchange_weak(lowest, group)) {
  }
}

bool SlotTable::take(Slot slot) {
  std::uint16_t none = 0;
  if (!references_[slot].compare_exchange_strong(none, 1)) return false;
  groups_[slot / kGroupSlots].used.fetch_add(1);
  return true;
}

void SlotTable::share(Slot slot) {
  if (references_[slot].fetch_add(1) == 0xffff) base::stop("more than 65,535 processes share one page of the store");
}

bool SlotTable::release(Slot slot) {
  if (references_[slot].fetch_sub(1) != 1) return false;
  Group& group = groups_[slot / kGroupSlots];
  if (group.used.fetch_sub(1) == 1 && group.owners.load() == 0) may_be_taken(slot / kGroupSlots);
  return true;
}

}  // namespace farheap::segment
