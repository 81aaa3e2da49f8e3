// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: a chunk is noted as a region's before the region has a slot in it, and until all of them came back.
#include "heap/heap_regions.hpp"

#include <algorithm>
#include <cstring>
#include <ranges>
#include <utility>

#include "base/raise_to.hpp"

namespace farheap::heap {

namespace {

// A class's slots that are in no object and in no thread's cache.
std::size_t spare_bytes(const ClassStatistics& one) {
  return (one.slots - std::min(one.slots, one.live + one.cached)) * one.slot_bytes;
}

bool has_too_much(const ClassStatistics& one) {
  return spare_bytes(one) > std::max(HeapRegions::kSpareAlways, one.slots * one.slot_bytes / HeapRegions::kSpareShare);
}

HeapRegions::Use use_of(const Statistics& all) {
  HeapRegions::Use use{all.slab_bytes, 0};
  for (const ClassStatistics& one : all.classes) use.spare_bytes += spare_bytes(one);
  return use;
}

HeapRegions::Use operator+(const HeapRegions::Use& one, const HeapRegions::Use& other) {
  return {one.bytes + other.bytes, one.spare_bytes + other.spare_bytes};
}

}  // namespace

Result<std::unique_ptr<HeapRegions>> HeapRegions::make(segment::PageSpace& space, Heap& common, unsigned regions) {
  auto region_of = RegionOfChunk::make(space.capacity_bytes() / kChunkBytes + 1);
  if (!region_of) return fail(std::move(region_of.error()));
  std::unique_ptr<HeapRegions> made(new HeapRegions(space, common, std::move(*region_of)));
  for (unsigned number = 1; number <= regions; ++number) {
    made->regions_.push_back(std::make_unique<Region>(*made, static_cast<std::uint8_t>(number)));
    if (!made->regions_.back()->heap->usable()) {
      return fail(ErrorCode::kNoSpace, "cannot make a region", "of small objects", "its books have no memory",
                  "raise the limit of addresses (ulimit -v), or run without a plan");
    }
  }
  return made;
}

void* HeapRegions::reallocate(void* object, std::size_t bytes) noexcept {
  Heap& heap = heap_of(object);
  if (&heap == &common_ || bytes <= kLargestSmall) return heap.reallocate(object, bytes);
  void* const moved = common_.allocate(bytes);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, object, std::min(heap.usable_size(object), bytes));
  heap.free(object);
  return moved;
}

thread_local unsigned HeapRegions::t_calls = 0;

void HeapRegions::look_now() noexcept {
  std::array<Heap*, kClassCount> found{};
  std::array<std::size_t, kClassCount> most{};
  const auto look_at = [&](Heap& heap, const Statistics& now) {
    for (unsigned i = 1; i < kClassCount; ++i) {
      const ClassStatistics& one = now.classes[i];
      if (!has_too_much(one) || spare_bytes(one) <= most[i]) continue;
      found[i] = &heap;
      most[i] = spare_bytes(one);
    }
  };
  Use sum;
  for (const auto& region : regions_) {
    const Statistics now = region->heap->statistics();
    look_at(*region->heap, now);
    sum = sum + use_of(now);
  }
  const Statistics common = common_.statistics();
  for (unsigned i = 1; i < kClassCount; ++i) {
    if (found[i] == nullptr && has_too_much(common.classes[i])) found[i] = &common_;
    has_spare_[i].store(found[i], std::memory_order_relaxed);
  }
  base::raise_to(most_bytes_, sum.bytes);
  base::raise_to(most_spare_bytes_, sum.spare_bytes);
}

void HeapRegions::purge() noexcept {
  for (const auto& region : regions_) region->heap->purge();
}

HeapRegions::Use HeapRegions::use() noexcept {
  Use sum;
  for (const auto& region : regions_) sum = sum + use_of(region->heap->statistics());
  return sum;
}

void HeapRegions::lock_for_fork() noexcept {
  for (const auto& region : regions_) region->heap->lock_for_fork();
}

void HeapRegions::unlock_after_fork_parent() noexcept {
  for (const auto& region : regions_ | std::views::reverse) region->heap->unlock_after_fork_parent();
}

void HeapRegions::unlock_after_fork_child() noexcept {
  for (const auto& region : regions_ | std::views::reverse) region->heap->unlock_after_fork_child();
}

// A region is asked for small objects only, so it asks for whole chunks.
std::byte* HeapRegions::Chunks::obtain(std::size_t bytes, std::size_t alignment) {
  std::byte* const at = all_.space_.obtain(bytes, alignment);
  if (at == nullptr) return nullptr;
  note(at, bytes, region_);
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  base::raise_to(all_.end_, all_.chunk_of(at) + bytes / kChunkBytes);
  return at;
}

void HeapRegions::Chunks::give_back(std::byte* at, std::size_t bytes) {
  note(at, bytes, kCommon);
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  all_.space_.give_back(at, bytes);
}

void HeapRegions::Chunks::note(const std::byte* at, std::size_t bytes, std::uint8_t region) {
  for (std::size_t i = 0; i < bytes / kChunkBytes; ++i) {
    all_.region_of_[all_.chunk_of(at) + i].store(region, std::memory_order_relaxed);
  }
}

}  // namespace farheap::heap
