// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: a slab with a free slot is the current one or in the list of its fullness; a full slab is in none.
#include "heap/bin.hpp"

#include <algorithm>

#include "base/mutex.hpp"
#include "heap/misuse.hpp"

namespace farheap::heap {

namespace {

[[nodiscard]] unsigned list_for(const Slab& slab, const SizeClass& sizes, unsigned lists) {
  return std::min<unsigned>(slab.used * lists / sizes.slots, lists - 1);
}

}  // namespace

void Bin::link(HeapMap& map, SlabIndex index, unsigned list) noexcept {
  Slab& slab = map.slab(index);
  slab.list = static_cast<std::uint8_t>(list + 1);
  slab.previous = 0;
  slab.next = lists_[list];
  if (slab.next != 0) map.slab(slab.next).previous = index;
  lists_[list] = index;
  ++listed_;
}

void Bin::unlink(HeapMap& map, SlabIndex index) noexcept {
  Slab& slab = map.slab(index);
  if (slab.previous != 0) {
    map.slab(slab.previous).next = slab.next;
  } else {
    lists_[slab.list - 1] = slab.next;
  }
  if (slab.next != 0) map.slab(slab.next).previous = slab.previous;
  slab.list = 0;
  --listed_;
}

SlabIndex Bin::fullest(HeapMap& map) noexcept {
  for (unsigned list = kLists; list-- > 0;) {
    if (SlabIndex index = lists_[list]; index != 0) {
      unlink(map, index);
      return index;
    }
  }
  return 0;
}

SlabIndex Bin::open_slab(HeapMap& map, ChunkPool& pool, unsigned size_class, unsigned owner) noexcept {
  std::size_t granule = pool.obtain(kSizeClasses[size_class].granules);
  if (granule == ChunkPool::kNone) return 0;
  auto index = static_cast<SlabIndex>(granule + 1);
  map.open_slab(index, size_class, owner);
  return index;
}

unsigned Bin::refill(HeapMap& map, ChunkPool& pool, unsigned size_class, unsigned owner, void** out,
                     unsigned wanted) noexcept {
  const SizeClass& sizes = kSizeClasses[size_class];
  base::LockGuard lock(mutex_);
  unsigned taken = 0;
  for (;;) {
    if (current_ != 0) {
      Slab& slab = map.slab(current_);
      taken += slab.take(sizes, map.base() + map.slab_offset(current_), out + taken, wanted - taken);
      if (taken == wanted) break;
    }
    current_ = fullest(map);
    if (current_ != 0) continue;
    if (taken > 0) break;  // enough for now: do not open a slab for the rest of a batch
    current_ = open_slab(map, pool, size_class, owner);
    if (current_ == 0) return 0;
    ++use_.slabs;
  }
  use_.slots_used += taken;
  return taken;
}

// The slab that is empty and leaves the bin, or 0. One empty slab stays when it is all there is to allocate from: where
// objects come and go in order, the slab that empties is the one that the next refill would open.
SlabIndex Bin::after_put_back(HeapMap& map, SlabIndex index, const SizeClass& sizes) noexcept {
  Slab* slab = &map.slab(index);
  bool leaves = slab->used == 0;
  if (index == current_) {
    // Now there is enough to allocate from without the one that stayed.
    index = lists_[0];
    if (!leaves || index == 0 || map.slab(index).used != 0) return 0;
    slab = &map.slab(index);
  } else if (leaves) {
    leaves = listed_ > (slab->list != 0 ? 1u : 0u) || (current_ != 0 && map.slab(current_).used < sizes.slots);
  }
  unsigned list = list_for(*slab, sizes, kLists);
  if (!leaves && slab->list == list + 1) return 0;
  if (slab->list != 0) unlink(map, index);
  if (!leaves) {
    link(map, index, list);
    return 0;
  }
  --use_.slabs;
  map.close_slab(index);
  return index;
}

unsigned Bin::take_back(HeapMap& map, ChunkPool& pool, unsigned size_class, unsigned owner, void** slots,
                        unsigned count) noexcept {
  const SizeClass& sizes = kSizeClasses[size_class];
  unsigned others = 0;
  SlabIndex emptied = 0;
  base::UniqueLock lock(mutex_);
  for (unsigned i = 0; i < count; ++i) {
    std::size_t offset = map.offset_of(slots[i]);
    if (map.class_at(offset) != size_class) stop_not_allocated(slots[i], "was freed before");
    SlabIndex index = map.slab_at(offset);
    Slab& slab = map.slab(index);
    if (slab.owner != owner) {
      slots[others++] = slots[i];
      continue;
    }
    std::size_t within = offset - map.slab_offset(index);
    std::uint32_t slot = sizes.slot_at(within);
    if (slot * std::size_t{sizes.slot_bytes} != within || slot >= sizes.slots) {
      stop_not_allocated(slots[i], "is not the start of an object");
    }
    if (!slab.put_back(slot)) stop_not_allocated(slots[i], "is free already");
    --use_.slots_used;
    if (SlabIndex leaving = after_put_back(map, index, sizes); leaving != 0) {
      map.slab(leaving).next = emptied;
      emptied = leaving;
    }
  }
  lock.unlock();
  while (emptied != 0) {
    SlabIndex index = emptied;
    emptied = map.slab(index).next;
    pool.give_back(index - 1, sizes.granules);
  }
  return others;
}

BinUse Bin::use() noexcept {
  base::LockGuard lock(mutex_);
  return use_;
}

}  // namespace farheap::heap
