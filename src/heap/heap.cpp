// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The slow paths: a cache that is empty or full, objects above 32 KiB, threads without a cache.
//
// Invariant: who changes the books has passed the gate, once, around all changes that belong together.
#include "heap/heap.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "heap/misuse.hpp"

namespace farheap::heap {

void* Heap::allocate_slow(std::size_t bytes) noexcept {
  if (!usable_) return nullptr;
  if (bytes > kLargestSmall) return obtain_large(bytes, base::kPageBytes).at;
  return allocate_small_slow(class_of(bytes));
}

// Addresses that wait to be used again may be what is missing.
LargeRuns::Run Heap::obtain_large(std::size_t bytes, std::size_t alignment) noexcept {
  {
    base::GatePass pass(gate_);
    LargeRuns::Run run = large_.obtain(bytes, alignment);
    if (run.at != nullptr || bytes > map_.capacity_bytes()) return run;
  }
  purge();
  base::GatePass pass(gate_);
  return large_.obtain(bytes, alignment);
}

// Slots in a thread's cache.
std::uint32_t Heap::most_cached(unsigned size_class) const noexcept {
  constexpr std::uint32_t kPartOfSmall = 8;
  const std::uint32_t most = kSizeClasses[size_class].cache_slots;
  return is_small_ ? std::max(most / kPartOfSmall, kFirstCacheSlots) : most;
}

void* Heap::allocate_small_slow(unsigned size_class) noexcept {
  ThreadCache* cache = this_thread();
  base::GatePass pass(gate_);
  if (cache == nullptr) {
    void* slot = nullptr;
    return bin(0, size_class).refill(map_, pool_, size_class, 0, &slot, 1) == 1 ? slot : nullptr;
  }
  CacheBin& mine = cache->bins[size_class];
  if (void* slot = mine.pop()) return slot;  // the thread's first call, or an aligned one
  look_for_idle(*cache);
  mine.used = true;
  mine.capacity = std::min(mine.capacity * 2, most_cached(size_class));
  unsigned wanted = std::max(1u, mine.capacity / 2);
  unsigned got = bin(cache->arena, size_class).refill(map_, pool_, size_class, cache->arena, mine.slots, wanted);
  if (got == 0) return nullptr;
  // Lowest address first: a program that allocates in order finds its objects in order.
  std::reverse(mine.slots, mine.slots + got);
  mine.count.store(got - 1, std::memory_order_relaxed);
  return mine.slots[got - 1];
}

void Heap::free_slow(void* pointer) noexcept {
  if (pointer == nullptr) return;
  std::size_t offset = map_.offset_of(pointer);
  if (offset >= map_.capacity_bytes()) stop_not_allocated(pointer, "lies outside of the heap");
  unsigned size_class = map_.class_at(offset);
  if (size_class == 0) {
    base::GatePass pass(gate_);
    large_.give_back(pointer);
  } else {
    free_small_slow(pointer, size_class);
  }
}

void Heap::free_small_slow(void* pointer, unsigned size_class) noexcept {
  ThreadCache* cache = this_thread();
  base::GatePass pass(gate_);
  if (cache == nullptr) {
    put_back(size_class, &pointer, 1);
    return;
  }
  CacheBin& mine = cache->bins[size_class];
  if (mine.push(pointer)) return;
  look_for_idle(*cache);
  mine.used = true;
  if (const std::uint32_t most = most_cached(size_class); mine.capacity < most) {
    mine.capacity = std::min(mine.capacity * 2, most);
  } else {
    // The older half goes; the slots used last stay, they may be in the processor's cache.
    std::uint32_t have = mine.count.load(std::memory_order_relaxed);
    std::uint32_t leaving = have / 2;
    put_back(size_class, mine.slots, leaving);
    std::copy(mine.slots + leaving, mine.slots + have, mine.slots);
    mine.count.store(have - leaving, std::memory_order_relaxed);
  }
  (void)mine.push(pointer);
}

// Requires: the gate is passed.
// One round for each arena that owns some of the slots: the bin of the first one that is left takes all of its own.
void Heap::put_back(unsigned size_class, void** slots, unsigned count) noexcept {
  while (count > 0) {
    std::size_t offset = map_.offset_of(slots[0]);
    if (map_.class_at(offset) != size_class) stop_not_allocated(slots[0], "was freed before");
    unsigned owner = map_.slab(map_.slab_at(offset)).owner;
    count = bin(owner, size_class).take_back(map_, pool_, size_class, owner, slots, count);
  }
}

void* Heap::allocate_zeroed(std::size_t bytes) noexcept {
  if (bytes > kLargestSmall) {
    if (!usable_) return nullptr;
    LargeRuns::Run run = obtain_large(bytes, base::kPageBytes);
    if (run.at != nullptr && !run.fresh) std::memset(run.at, 0, bytes);
    return run.at;
  }
  void* object = allocate(bytes);
  if (object != nullptr) std::memset(object, 0, bytes);
  return object;
}

void* Heap::allocate_aligned(std::size_t bytes, std::size_t alignment) noexcept {
  if (alignment <= 16) return allocate(std::max(bytes, alignment));
  if (!usable_ || bytes > map_.capacity_bytes() || alignment > map_.capacity_bytes()) return nullptr;
  std::size_t rounded = base::round_up(std::max<std::size_t>(bytes, 1), alignment);
  if (rounded > kLargestSmall)
    return obtain_large(std::max<std::size_t>(bytes, 1), std::max(alignment, base::kPageBytes)).at;
  // Slabs begin at multiples of 64 KiB: slots of a multiple of the alignment are aligned.
  unsigned size_class = class_of(rounded);
  while (kSizeClasses[size_class].slot_bytes % alignment != 0) ++size_class;
  return allocate(kSizeClasses[size_class].slot_bytes);
}

std::size_t Heap::usable_size(const void* pointer) const noexcept {
  if (pointer == nullptr) return 0;
  std::size_t offset = map_.offset_of(pointer);
  if (offset >= map_.capacity_bytes()) stop_not_allocated(pointer, "lies outside of the heap");
  if (unsigned size_class = map_.class_at(offset); size_class != 0) {
    const SizeClass& sizes = kSizeClasses[size_class];
    std::size_t within = offset - map_.slab_offset(map_.slab_at(offset));
    if (sizes.slot_at(within) * std::size_t{sizes.slot_bytes} != within) {
      stop_not_allocated(pointer, "is not the start of an object");
    }
    return sizes.slot_bytes;
  }
  std::size_t bytes = large_.usable_bytes(pointer);
  if (bytes == 0) stop_not_allocated(pointer, "is not the start of an object, or was freed before");
  return bytes;
}

Heap::Extent Heap::object_at(const void* within) const noexcept {
  const std::size_t offset = map_.offset_of(within);
  if (offset >= map_.capacity_bytes()) return {nullptr, 0};
  if (const unsigned size_class = map_.class_at(offset); size_class != 0) {
    const SizeClass& sizes = kSizeClasses[size_class];
    const std::size_t slab = map_.slab_offset(map_.slab_at(offset));
    const std::size_t slot = slab + sizes.slot_at(offset - slab) * std::size_t{sizes.slot_bytes};
    return {map_.base() + slot, sizes.slot_bytes};
  }
  // Of a large object only the first page says how many there are.
  for (std::size_t page = offset >> base::kPageShift;; --page) {
    const std::size_t start = page << base::kPageShift;
    if (map_.class_at(start) != 0) break;
    if (const std::size_t bytes = std::size_t{map_.run_pages(start).load(std::memory_order_relaxed)} * base::kPageBytes;
        bytes != 0) {
      if (offset - start < bytes) return {map_.base() + start, bytes};
      break;
    }
    if (page == 0) break;
  }
  return {nullptr, 0};
}

void* Heap::move(void* pointer, std::size_t old_bytes, std::size_t bytes) noexcept {
  // An object that grew above 32 KiB will likely grow again: an eighth of spare addresses (no memory until they
  // are touched) makes many small steps cost no more than a few moves.
  std::size_t spare = bytes > kLargestSmall && bytes > old_bytes ? bytes / 8 : 0;
  void* moved = allocate(bytes + spare);
  if (moved == nullptr && spare > 0) moved = allocate(bytes);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, pointer, std::min(old_bytes, bytes));
  free(pointer);
  return moved;
}

void* Heap::reallocate(void* pointer, std::size_t bytes) noexcept {
  if (pointer == nullptr) return allocate(bytes);
  std::size_t old_bytes = usable_size(pointer);
  // Small steps down stay: to move is to touch memory that may be far away.
  if (bytes <= old_bytes && bytes >= old_bytes / 2) return pointer;
  if (bytes > kLargestSmall && old_bytes > kLargestSmall) {
    base::GatePass pass(gate_);
    if (large_.resize(pointer, bytes)) return pointer;
  }
  return move(pointer, old_bytes, bytes);
}

}  // namespace farheap::heap
