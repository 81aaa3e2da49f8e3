// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slots are the pages of a store. Each is written once and then immutable while anybody refers to it; the count of
// references is shared by all processes that share the store (a process and its forked children), so that a slot
// is taken again only when nobody reads it any more. Forks, snapshots and old versions are references.
//
// Slots come in groups of 512: an extent of the segment owns a group of its own, where page i prefers slot i, so that
// neighbours stay neighbours and sweeps stay sequential.
//
// Thread-safety: any thread of any of the processes; lock-free. A process that is killed keeps its references until
// the last of the family ends.
#pragma once

#include <atomic>
#include <cstdint>

#include "os/mapping.hpp"

namespace farheap::segment {

using Slot = std::uint32_t;
inline constexpr Slot kNoSlot = 0xffffffff;
using SlotGroup = std::uint32_t;
inline constexpr SlotGroup kNoGroup = 0xffffffff;
inline constexpr std::uint32_t kGroupSlots = 512;

class SlotTable {
 public:
  // `capacity` slots; kNoSpace if the addresses for the counts cannot be had. Not shared: a forked child has a table of
  // its own, as of the fork.
  [[nodiscard]] static Result<SlotTable> make(std::uint64_t capacity, bool shared = true);

  // A group that nobody owns and whose slots are all free, the next one after `after` if that is so. It has one
  // owner now. kNoGroup when all are taken.
  [[nodiscard]] SlotGroup take_group(SlotGroup after);
  void share_group(SlotGroup group);    // one owner more: a forked child
  void release_group(SlotGroup group);  // one less

  // Nobody else owns it and none of its slots is in use: nobody can write there. Requires: the caller owns it.
  [[nodiscard]] bool is_empty_and_mine_alone(SlotGroup group) const {
    return groups_[group].owners.load() == 1 && groups_[group].used.load() == 0;
  }

  // Takes a free slot (one reference). False if it is not free. Requires: the caller owns its group.
  [[nodiscard]] bool take(Slot slot);
  void share(Slot slot);
  // True if that was the last reference: the slot's bytes are not needed any more.
  [[nodiscard]] bool release(Slot slot);
  // Requires: the caller holds a reference.
  [[nodiscard]] bool is_shared(Slot slot) const { return references_[slot].load(std::memory_order_acquire) > 1; }
  [[nodiscard]] std::uint32_t references(Slot slot) const { return references_[slot].load(); }

 private:
  struct Group {
    std::atomic<std::uint16_t> owners;
    std::atomic<std::uint16_t> used;  // slots with references
  };
  struct Shared {
    std::atomic<std::uint32_t> lowest;  // a hint: below it all are taken
  };
  void may_be_taken(SlotGroup group);
  os::ReservedArray<std::atomic<std::uint16_t>> references_;
  os::ReservedArray<Group> groups_;
  os::ReservedArray<Shared> shared_;
};

}  // namespace farheap::segment
