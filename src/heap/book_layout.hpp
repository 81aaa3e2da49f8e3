// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The layout of the allocators' books as they lie in a kept segment: a file format. What is read back must have been
// written by the same layout. If an assertion here fails, the change is one of the format: either keep the layout, or
// write the new numbers down and raise kBooksFormat, so that older segments are refused (see docs/formats.md).
//
// Locks, pointers into the process (spaces, sources, the gate), the heap's id, place and number, and what the chunk
// pool has learnt are stored but mean nothing to the next process. The size classes are a part of the format too: slabs
// are cut by them.
//
// Thread-safety: constants.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heap/heap.hpp"
#include "segment/run_allocator.hpp"

namespace farheap::heap {

inline constexpr std::uint32_t kBooksFormat = 1;

}  // namespace farheap::heap

static_assert(sizeof(void*) == 8);
// Of types that are not of standard layout offsetof is conditionally supported: by GCC and clang it is.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace farheap::segment {

struct RunBookLayout {
  static_assert(sizeof(FreeRun) == 64);
  static_assert(offsetof(FreeRun, start) == 0);
  static_assert(offsetof(FreeRun, end) == 8);
  static_assert(offsetof(FreeRun, address_hook) == 16);
  static_assert(offsetof(FreeRun, size_hook) == 40);

  static_assert(sizeof(FreeRunPool) == 48);
  static_assert(offsetof(FreeRunPool, source_) == 0);
  static_assert(offsetof(FreeRunPool, spare_) == 8);
  static_assert(offsetof(FreeRunPool, blocks_) == 16);
  static_assert(offsetof(FreeRunPool, next_) == 24);
  static_assert(offsetof(FreeRunPool, last_) == 32);
  static_assert(offsetof(FreeRunPool, next_block_bytes_) == 40);

  static_assert(sizeof(RunAllocator) == 128);
  static_assert(offsetof(RunAllocator, begin_) == 0);
  static_assert(offsetof(RunAllocator, end_) == 8);
  static_assert(offsetof(RunAllocator, free_bytes_) == 16);
  static_assert(offsetof(RunAllocator, pool_) == 24);
  static_assert(offsetof(RunAllocator, by_address_) == 72);
  static_assert(offsetof(RunAllocator, by_size_) == 104);
};

}  // namespace farheap::segment

namespace farheap::heap {

// A change of any size, slot count or slab length changes this.
[[nodiscard]] constexpr std::uint64_t size_classes_digest() {
  std::uint64_t digest = 0xcbf29ce484222325;
  for (const SizeClass& sizes : kSizeClasses) {
    for (std::uint64_t part : {std::uint64_t{sizes.slot_bytes}, std::uint64_t{sizes.slots},
                               std::uint64_t{sizes.granules}, std::uint64_t{sizes.cache_slots}}) {
      digest = (digest ^ part) * 0x100000001b3;
    }
  }
  return digest;
}
static_assert(size_classes_digest() == 0xd7a7c44b14e0b4fe);

struct BookLayout {
  static_assert(sizeof(SparseTable<int>) == 24);
  static_assert(offsetof(SparseTable<int>, entries_) == 0);
  static_assert(offsetof(SparseTable<int>, bytes_) == 8);
  static_assert(offsetof(SparseTable<int>, mapped_bytes_) == 16);

  static_assert(sizeof(MetadataArena) == 32);
  static_assert(offsetof(MetadataArena, source_) == 0);
  static_assert(offsetof(MetadataArena, blocks_) == 8);
  static_assert(offsetof(MetadataArena, next_) == 16);
  static_assert(offsetof(MetadataArena, left_) == 24);

  static_assert(sizeof(MetadataArena::Block) == 16);
  static_assert(offsetof(MetadataArena::Block, next) == 0);
  static_assert(offsetof(MetadataArena::Block, bytes) == 8);

  static_assert(sizeof(IndexSet) == 128);
  static_assert(offsetof(IndexSet, levels_) == 0);
  static_assert(offsetof(IndexSet, level_words_) == 96);

  static_assert(sizeof(HeapMap) == 112);
  static_assert(offsetof(HeapMap, base_) == 0);
  static_assert(offsetof(HeapMap, capacity_) == 8);
  static_assert(offsetof(HeapMap, classes_) == 16);
  static_assert(offsetof(HeapMap, slabs_) == 40);
  static_assert(offsetof(HeapMap, bits_beside_) == 64);
  static_assert(offsetof(HeapMap, run_pages_) == 88);

  static_assert(sizeof(HeapMap::BitsBeside) == 1024);
  static_assert(offsetof(HeapMap::BitsBeside, words) == 0);

  static_assert(sizeof(Slab) == 128);
  static_assert(offsetof(Slab, size_class) == 0);
  static_assert(offsetof(Slab, granules_back) == 1);
  static_assert(offsetof(Slab, list) == 2);
  static_assert(offsetof(Slab, owner) == 4);
  static_assert(offsetof(Slab, used) == 6);
  static_assert(offsetof(Slab, first_word) == 8);
  static_assert(offsetof(Slab, next) == 12);
  static_assert(offsetof(Slab, previous) == 16);
  static_assert(offsetof(Slab, free_bits) == 24);
  static_assert(offsetof(Slab, words_here) == 32);

  static_assert(sizeof(CacheBin) == 24);
  static_assert(offsetof(CacheBin, count) == 0);
  static_assert(offsetof(CacheBin, capacity) == 4);
  static_assert(offsetof(CacheBin, used) == 8);
  static_assert(offsetof(CacheBin, slots) == 16);

  static_assert(sizeof(ThreadCache) == 1432);
  static_assert(offsetof(ThreadCache, heap) == 0);
  static_assert(offsetof(ThreadCache, next) == 8);
  static_assert(offsetof(ThreadCache, previous) == 16);
  static_assert(offsetof(ThreadCache, arena) == 24);
  static_assert(offsetof(ThreadCache, slow_calls) == 28);
  static_assert(offsetof(ThreadCache, next_look) == 32);
  static_assert(offsetof(ThreadCache, bins) == 40);

  static_assert(sizeof(BinLock) == 4);

  static_assert(sizeof(BinUse) == 16);
  static_assert(offsetof(BinUse, slabs) == 0);
  static_assert(offsetof(BinUse, slots_used) == 8);

  static_assert(sizeof(Bin) == 64);
  static_assert(offsetof(Bin, mutex_) == 0);
  static_assert(offsetof(Bin, current_) == 4);
  static_assert(offsetof(Bin, lists_) == 8);
  static_assert(offsetof(Bin, listed_) == 24);
  static_assert(offsetof(Bin, use_) == 32);

  static_assert(sizeof(ChunkPool) == 360);
  static_assert(offsetof(ChunkPool, space_) == 0);
  static_assert(offsetof(ChunkPool, mutex_) == 8);
  static_assert(offsetof(ChunkPool, allowance_) == 12);
  static_assert(offsetof(ChunkPool, chunks_) == 48);
  static_assert(offsetof(ChunkPool, with_free_) == 72);
  static_assert(offsetof(ChunkPool, with_dirty_) == 200);
  static_assert(offsetof(ChunkPool, dirty_granules_) == 328);
  static_assert(offsetof(ChunkPool, used_granules_) == 336);
  static_assert(offsetof(ChunkPool, empty_chunks_) == 344);
  static_assert(offsetof(ChunkPool, chunk_limit_) == 352);

  static_assert(sizeof(ChunkPool::Chunk) == 8);
  static_assert(offsetof(ChunkPool::Chunk, free) == 0);
  static_assert(offsetof(ChunkPool::Chunk, dirty) == 4);

  static_assert(sizeof(LargeRuns) == 608);
  static_assert(offsetof(LargeRuns, space_) == 0);
  static_assert(offsetof(LargeRuns, most_waiting_) == 16);
  static_assert(offsetof(LargeRuns, live_bytes_) == 24);
  static_assert(offsetof(LargeRuns, offset_limit_) == 32);
  static_assert(offsetof(LargeRuns, mutex_) == 40);
  static_assert(offsetof(LargeRuns, waiting_) == 80);
  static_assert(offsetof(LargeRuns, waiting_count_) == 592);
  static_assert(offsetof(LargeRuns, waiting_bytes_) == 600);

  static_assert(sizeof(LargeRuns::Waiting) == 16);
  static_assert(offsetof(LargeRuns::Waiting, at) == 0);
  static_assert(offsetof(LargeRuns::Waiting, bytes) == 8);

  static_assert(sizeof(Heap) == 1344);
  static_assert(offsetof(Heap, map_) == 0);
  static_assert(offsetof(Heap, id_) == 112);
  static_assert(offsetof(Heap, place_) == 120);
  static_assert(offsetof(Heap, has_thread_caches_) == 124);
  static_assert(offsetof(Heap, usable_) == 125);
  static_assert(offsetof(Heap, number_) == 126);
  static_assert(offsetof(Heap, arenas_) == 128);
  static_assert(offsetof(Heap, bins_) == 136);
  static_assert(offsetof(Heap, pool_) == 144);
  static_assert(offsetof(Heap, large_) == 504);
  static_assert(offsetof(Heap, gate_) == 1112);
  static_assert(offsetof(Heap, is_small_) == 1120);
  static_assert(offsetof(Heap, unused_) == 1121);
  static_assert(offsetof(Heap, threads_mutex_) == 1128);
  static_assert(offsetof(Heap, metadata_) == 1168);
  static_assert(offsetof(Heap, living_) == 1200);
  static_assert(offsetof(Heap, spare_) == 1208);
  static_assert(offsetof(Heap, arena_threads_) == 1216);

  static_assert(kClassCount == 58);
  static_assert(kGranuleShift == 16);
  static_assert(kChunkShift == 21);
  static_assert(Heap::kMostArenas == 32);
  static_assert(Bin::kLists == 4);
  static_assert(LargeRuns::kWaiting == 32);
  static_assert(Slab::kWordsHere == 12);
  static_assert(Slab::kWordsBeside == 128);
  static_assert(IndexSet::kLevels == 4);
};

}  // namespace farheap::heap

#pragma GCC diagnostic pop
