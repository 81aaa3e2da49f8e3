// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the pages of a segment rest in its store: page -> slot. The pager reads and writes through it.
//
// Most pages of an extent are in the extent's own group of slots, at their own place; a bit says so. A page whose
// place is taken (a forked child still refers to what was there) is a stray: it goes to the same place of a further
// group of the extent, and is looked up there.
//
// That is so where parent and child share the store. Where a fork copies it (store/copied_by_fork.hpp), they have
// nothing in common that one could spoil for the other, and every page stays at home.
//
// Thread-safety: any thread. One page is dealt with by one caller at a time (the pager sees to it).
#pragma once

#include <bitset>
#include <memory>
#include <vector>

#include "base/mutex.hpp"
#include "base/units.hpp"
#include "farheap/store.hpp"
#include "os/mapping.hpp"
#include "pager/core_index.hpp"
#include "pager/view.hpp"
#include "segment/family.hpp"
#include "segment/slot_io.hpp"
#include "segment/slot_table.hpp"
#include "store/copied_by_fork.hpp"

namespace farheap::segment {

class BlockMap final : public pager::Backing {
 public:
  // The store's block is the page. The store outlives the map.
  [[nodiscard]] static Result<std::unique_ptr<BlockMap>> make(Store& store, std::uint64_t capacity_pages);
  ~BlockMap() override;

  [[nodiscard]] Status read(std::span<const Read> runs) override;
  [[nodiscard]] const std::byte* at_rest(pager::PageRun run) override;
  [[nodiscard]] Status write(std::span<const Write> runs) override;
  [[nodiscard]] std::unique_ptr<Reads> reads_in_flight(unsigned most) override;
  void forget(pager::PageRun run) override;
  [[nodiscard]] Result<Stored> stored_from(pager::PageNumber first) override;

  // Where the page rests, kNoSlot if nowhere.
  [[nodiscard]] Slot slot_of(pager::PageNumber page) const;

  // From now on slots are written down there, too, for cores. Requires: nothing was written yet.
  void note_for_cores(pager::CorePage* pages) { core_pages_ = pages; }

  // Around fork(): the child's copy of this map refers to the same slots, so each gets one reference more before the
  // fork. Where the fork failed, or when the child's map is not needed, they are given back.
  // Between lock_for_fork() and unlock the map does not change. What children referred to that have ended since is
  // taken back before a fork and with each write().
  void lock_for_fork() FARHEAP_ACQUIRE(mutex_);
  void unlock_after_fork(bool forked) FARHEAP_RELEASE(mutex_);
  // In the child, where the store may not be able to go on: then every read and write says so.
  void unlock_in_child() FARHEAP_RELEASE(mutex_);
  // For tests: the processes that share the slots.
  [[nodiscard]] Family& family() { return *family_; }
  [[nodiscard]] const SlotTable& slots() const { return slots_; }

 private:
  static constexpr std::uint32_t kPages = kGroupSlots;
  struct Extent {
    std::vector<SlotGroup> groups;  // the home, then those of strays
    std::bitset<kPages> stored;
    std::unique_ptr<std::uint16_t[]> stray;  // index into groups; absent: all at home
    [[nodiscard]] Slot slot(std::uint32_t index) const {
      return groups[stray ? stray[index] : 0] * kGroupSlots + index;
    }
  };

  class InFlight;
  BlockMap(Store& store, store::CopiedByFork* copied, os::ReservedArray<Extent*> extents, SlotTable slots,
           std::unique_ptr<Family> family);
  [[nodiscard]] bool place_all(std::span<const Write> runs, std::vector<SlotWrite>& entries);
  [[nodiscard]] Extent& extent(std::uint64_t number) FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] Slot place(Extent& extent, std::uint32_t index) FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] bool take_in_group(Extent& extent, std::uint16_t group, std::uint32_t index) FARHEAP_REQUIRES(mutex_);
  void give_up(Extent& extent, std::uint32_t index, std::vector<Slot>& freed) FARHEAP_REQUIRES(mutex_);
  void erase(Slot first, std::uint64_t count);
  [[nodiscard]] bool release(Slot slot, Family::Member holder);
  void erase_and_release(std::vector<Slot>& freed, Family::Member holder);
  void release_group(SlotGroup group, Family::Member holder);
  void drop_extent(std::uint64_t number) FARHEAP_REQUIRES(mutex_);
  void note_slot(pager::PageNumber page, Slot slot) {
    if (core_pages_ != nullptr) core_pages_[page].slot_and_one.store(slot + 1, std::memory_order_relaxed);
  }
  void take_back_from_the_dead() FARHEAP_REQUIRES(mutex_);
  template <class VisitGroup, class VisitSlot>
  void for_each_reference(VisitGroup visit_group, VisitSlot visit_slot) FARHEAP_REQUIRES(mutex_);

  [[nodiscard]] Status check_usable() const;
  // The first of slots that follow each other; kNoSlot if they do not, or a page is in none.
  [[nodiscard]] Slot slots_in_sequence(pager::PageRun run) const;

  Store& store_;
  store::CopiedByFork* const copied_;  // nullptr: parent and child share it
  bool cut_off_ = false;               // a forked child whose store does not fork
  pager::CorePage* core_pages_ = nullptr;
  mutable base::Mutex mutex_;  // guards what is in the extents, too
  os::ReservedArray<Extent*> extents_ FARHEAP_GUARDED_BY(mutex_);
  SlotTable slots_;
  std::unique_ptr<Family> family_;
  std::uint64_t extents_end_ FARHEAP_GUARDED_BY(mutex_) = 0;
  SlotGroup last_group_ FARHEAP_GUARDED_BY(mutex_) = kNoGroup;
};

}  // namespace farheap::segment
