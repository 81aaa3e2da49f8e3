// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether the books of a heap agree with each other. They may be damaged, so nothing is followed that was not looked
// at before: tables first, then the slabs by address, and only then the lists, whose members must be slabs that were
// found. Every walk along a list ends after as many steps as it can have members.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <unordered_set>
#include <vector>

#include "heap/heap.hpp"

namespace farheap::heap {

// The heap is at rest: no lock is taken, and what its mutexes hold may mean nothing.
class BookCheck {
 public:
  BookCheck(const Heap& heap, const KeptRange& kept, std::string& why) : heap_(heap), kept_(kept), why_(why) {}

  [[nodiscard]] bool all() {
    heap_.threads_mutex_.assume_held();
    return tables() && slabs() && chunks() && bins() && large() && ranges() && caches(heap_.living_, true) &&
           caches(heap_.spare_, false) && cached_once() && arenas();
  }
  [[nodiscard]] bool changed(const Heap::KeepChanged& keep_changed) { return heads() && changed_slabs(keep_changed); }

 private:
  struct BinFound {
    std::size_t slabs = 0;
    std::size_t used = 0;
    std::size_t with_free = 0;
  };
  struct Range {
    std::size_t begin;
    std::size_t end;
    const char* what;
  };

  template <class... Args>
  [[nodiscard]] bool wrong(fmt::format_string<Args...> text, Args&&... args) {
    why_ = fmt::format(text, std::forward<Args>(args)...);
    return false;
  }

  [[nodiscard]] bool heads();
  [[nodiscard]] bool changed_slabs(const Heap::KeepChanged& keep_changed);
  [[nodiscard]] bool tables();
  [[nodiscard]] bool slabs();
  [[nodiscard]] bool slab(std::size_t granule, unsigned size_class);
  [[nodiscard]] bool chunks();
  [[nodiscard]] bool bins();
  [[nodiscard]] bool bin(unsigned arena, unsigned size_class);
  [[nodiscard]] bool list(unsigned arena, unsigned size_class, unsigned list, std::size_t& members);
  [[nodiscard]] bool is_slab_of(SlabIndex index, unsigned arena, unsigned size_class) const;
  [[nodiscard]] bool large();
  [[nodiscard]] bool ranges();
  [[nodiscard]] bool caches(const ThreadCache* first, bool living);
  [[nodiscard]] bool cache_bin(const ThreadCache& cache, unsigned size_class, bool living);
  [[nodiscard]] bool cached_once();
  [[nodiscard]] bool arenas();

  [[nodiscard]] BinFound& found(unsigned arena, unsigned size_class) {
    return found_[arena * kClassCount + size_class];
  }

  const Heap& heap_;
  const KeptRange& kept_;
  std::string& why_;
  std::size_t chunk_count_ = 0;          // of the capacity
  std::vector<std::uint32_t> in_slabs_;  // for each chunk that was ever used the granules that slabs lie in
  std::vector<bool> is_slab_;            // for each granule of those whether a slab begins there
  std::vector<BinFound> found_;
  std::vector<Range> ranges_;
  std::unordered_set<const ThreadCache*> caches_;
  std::vector<const void*> cached_;
  std::array<unsigned, Heap::kMostArenas> arena_threads_{};
};

bool BookCheck::heads() {
  heap_.pool_.mutex_.assume_held();
  const HeapMap& map = heap_.map_;
  if (!kept_.holds(&heap_, sizeof heap_)) return wrong("the heap itself lies outside of the kept range");
  // As a byte: a damaged bool has no value.
  if (*reinterpret_cast<const unsigned char*>(&heap_.usable_) != 1) return wrong("the heap was never usable");
  std::size_t capacity = map.capacity_bytes();
  auto base = reinterpret_cast<std::uintptr_t>(map.base());
  if (capacity == 0 || capacity % kChunkBytes != 0 || base == 0 || base % kChunkBytes != 0 ||
      capacity > ~std::uintptr_t{0} - base || capacity / kGranuleBytes >= ~SlabIndex{0}) {
    return wrong("the heap's range ({} bytes at {}) cannot be one", capacity, fmt::ptr(map.base()));
  }
  chunk_count_ = capacity / kChunkBytes;
  if (heap_.arenas_ == 0 || heap_.arenas_ > Heap::kMostArenas) return wrong("there are {} arenas", heap_.arenas_);
  std::size_t bins = heap_.arenas_ * std::size_t{kClassCount};
  if (reinterpret_cast<std::uintptr_t>(heap_.bins_) % alignof(Bin) != 0 ||
      !kept_.holds(heap_.bins_, bins * sizeof(Bin))) {
    return wrong("the bins lie outside of the kept range");
  }
  if (!map.is_sound(kept_)) return wrong("a table of the heap's map has another length or lies elsewhere");
  if (heap_.pool_.chunk_limit_ > chunk_count_)
    return wrong("chunks up to number {} were used", heap_.pool_.chunk_limit_);
  found_.resize(bins);
  in_slabs_.resize(heap_.pool_.chunk_limit_);
  is_slab_.resize(heap_.pool_.chunk_limit_ * kGranulesPerChunk);
  return true;
}

bool BookCheck::tables() {
  if (!heads()) return false;
  const ChunkPool& pool = heap_.pool_;
  pool.mutex_.assume_held();
  if (!pool.chunks_.is_sound(chunk_count_ + 1, kept_) || !pool.with_free_.is_sound(chunk_count_ + 1, kept_) ||
      !pool.with_dirty_.is_sound(chunk_count_ + 1, kept_)) {
    return wrong("a table of the chunks has another length, lies elsewhere, or its levels do not agree");
  }
  return true;
}

// One page of records at a time; a slab whose first record lies on the page before is looked at once.
bool BookCheck::changed_slabs(const Heap::KeepChanged& keep_changed) {
  const auto page_of = [&](std::size_t granule) {
    const auto at = reinterpret_cast<std::uintptr_t>(&heap_.map_.record(granule));
    return (at - reinterpret_cast<std::uintptr_t>(kept_.begin)) / base::kPageBytes;
  };
  std::vector<std::uint64_t> pages;
  for (std::size_t granule = 0; granule < is_slab_.size(); granule += base::kPageBytes / sizeof(Slab)) {
    pages.push_back(page_of(granule));
  }
  const std::uint64_t first_page = pages.empty() ? 0 : pages.front();
  keep_changed(pages);
  for (const std::uint64_t page : pages) {
    const std::size_t first = (page - first_page) * (base::kPageBytes / sizeof(Slab));
    const std::size_t end = std::min(first + base::kPageBytes / sizeof(Slab), is_slab_.size());
    for (std::size_t granule = first; granule < end; ++granule) {
      const unsigned size_class = heap_.map_.class_of_granule(granule);
      if (size_class == 0) continue;
      const unsigned back = heap_.map_.record(granule).granules_back;
      if (back > granule % kGranulesPerChunk) return wrong("the slab of granule {} begins {} before it", granule, back);
      if (!is_slab_[granule - back] && !slab(granule - back, size_class)) return false;
    }
  }
  return true;
}

bool BookCheck::slabs() {
  for (std::size_t granule = 0; granule < is_slab_.size();) {
    unsigned size_class = heap_.map_.class_of_granule(granule);
    if (size_class == 0) {
      ++granule;
      continue;
    }
    if (!slab(granule, size_class)) return false;
    granule += kSizeClasses[size_class].granules;
  }
  for (std::size_t granule = is_slab_.size(); granule < chunk_count_ * kGranulesPerChunk; ++granule) {
    if (heap_.map_.class_of_granule(granule) != 0) return wrong("granule {} has a class but was never used", granule);
  }
  return true;
}

bool BookCheck::slab(std::size_t granule, unsigned size_class) {
  const HeapMap& map = heap_.map_;
  const Slab& slab = map.record(granule);
  if (size_class >= kClassCount) return wrong("granule {} has class {}", granule, size_class);
  const SizeClass& sizes = kSizeClasses[size_class];
  if (slab.size_class != size_class || slab.granules_back != 0) {
    return wrong("the class table says that a slab of class {} begins at granule {}, its record says class {}, {} back",
                 size_class, granule, slab.size_class, slab.granules_back);
  }
  std::size_t chunk = granule / kGranulesPerChunk;
  if (granule % kGranulesPerChunk + sizes.granules > kGranulesPerChunk) {
    return wrong("the slab at granule {} does not fit into its chunk", granule);
  }
  for (unsigned i = 0; i < sizes.granules; ++i) {
    if (map.class_of_granule(granule + i) != size_class || map.record(granule + i).granules_back != i) {
      return wrong("granule {} is not marked as a part of the slab at {}", granule + i, granule);
    }
    in_slabs_[chunk] |= std::uint32_t{1} << ((granule + i) % kGranulesPerChunk);
  }
  if (slab.owner >= heap_.arenas_) return wrong("the slab at granule {} belongs to arena {}", granule, slab.owner);
  unsigned words = Slab::words(sizes);
  if (slab.free_bits != (words <= Slab::kWordsHere ? slab.words_here : map.words_beside(granule))) {
    return wrong("the bits of the slab at granule {} lie at {}", granule, fmt::ptr(slab.free_bits));
  }
  std::size_t free = 0;
  for (unsigned i = 0; i < words; ++i) {
    std::uint64_t bits = slab.free_bits[i];
    free += static_cast<std::size_t>(std::popcount(bits));
    if (bits != 0 && i < slab.first_word) return wrong("the slab at granule {} has free slots that it misses", granule);
    unsigned rest = sizes.slots % 64u;
    if (i + 1 == words && rest != 0 && (bits >> rest) != 0) {
      return wrong("the slab at granule {} has more slots than its class", granule);
    }
  }
  if (slab.used + free != sizes.slots) {
    return wrong("the slab at granule {} counts {} used slots of {}, but {} are free", granule, slab.used, sizes.slots,
                 free);
  }
  is_slab_[granule] = true;
  BinFound& bin = found(slab.owner, size_class);
  ++bin.slabs;
  bin.used += slab.used;
  bin.with_free += free > 0;
  return true;
}

bool BookCheck::chunks() {
  const ChunkPool& pool = heap_.pool_;
  pool.mutex_.assume_held();
  std::size_t used = 0, dirty = 0, empty = 0;
  for (std::size_t i = 0; i < chunk_count_; ++i) {
    const ChunkPool::Chunk& chunk = pool.chunks_[i];
    std::uint32_t slabs = i < in_slabs_.size() ? in_slabs_[i] : 0;
    if ((chunk.free & slabs) != 0)
      return wrong("chunk {} has free granules ({:08x}) with slabs ({:08x})", i, chunk.free, slabs);
    bool ours = (chunk.free | slabs) != 0;
    if (ours && (chunk.free | slabs) != ChunkPool::kAll) {
      return wrong("chunk {} has granules that are neither free ({:08x}) nor in a slab ({:08x})", i, chunk.free, slabs);
    }
    if ((chunk.dirty & ~chunk.free) != 0) return wrong("chunk {} has dirty granules that are not free", i);
    if (pool.with_free_.holds(i) != (chunk.free != 0) || pool.with_dirty_.holds(i) != (chunk.dirty != 0)) {
      return wrong("chunk {} is not in the sets it belongs to", i);
    }
    if (ours && i >= pool.chunk_limit_)
      return wrong("chunk {} is in use, but none from {} on was", i, pool.chunk_limit_);
    if (ours) ranges_.push_back({i * kChunkBytes, (i + 1) * kChunkBytes, "a chunk"});
    used += static_cast<std::size_t>(std::popcount(slabs));
    dirty += static_cast<std::size_t>(std::popcount(chunk.dirty));
    empty += chunk.free == ChunkPool::kAll;
  }
  if (used != pool.used_granules_ || dirty != pool.dirty_granules_ || empty != pool.empty_chunks_) {
    return wrong("the chunk pool counts {} used granules, {} dirty ones and {} empty chunks; there are {}, {} and {}",
                 pool.used_granules_, pool.dirty_granules_, pool.empty_chunks_, used, dirty, empty);
  }
  return true;
}

bool BookCheck::is_slab_of(SlabIndex index, unsigned arena, unsigned size_class) const {
  if (index == 0 || index > is_slab_.size() || !is_slab_[index - 1]) return false;
  const Slab& slab = heap_.map_.slab(index);
  return slab.owner == arena && slab.size_class == size_class;
}

bool BookCheck::list(unsigned arena, unsigned size_class, unsigned list, std::size_t& members) {
  const SizeClass& sizes = kSizeClasses[size_class];
  const Bin& bin = heap_.bin(arena, size_class);
  bin.mutex_.assume_held();
  SlabIndex previous = 0;
  for (SlabIndex index = bin.lists_[list]; index != 0;) {
    if (!is_slab_of(index, arena, size_class)) {
      return wrong("list {} of bin {}/{} has {}, which is no slab of its", list, arena, size_class, index);
    }
    if (++members > found(arena, size_class).slabs) {
      return wrong("the lists of bin {}/{} have more members than there are slabs", arena, size_class);
    }
    const Slab& slab = heap_.map_.slab(index);
    unsigned right_list = std::min<unsigned>(slab.used * Bin::kLists / sizes.slots, Bin::kLists - 1);
    if (slab.list != list + 1 || slab.previous != previous || slab.used >= sizes.slots || right_list != list) {
      return wrong("slab {} in list {} of bin {}/{}: noted list {}, previous {} (is {}), {} of {} slots used", index,
                   list, arena, size_class, slab.list, slab.previous, previous, slab.used, sizes.slots);
    }
    previous = index;
    index = slab.next;
  }
  return true;
}

bool BookCheck::bin(unsigned arena, unsigned size_class) {
  const Bin& bin = heap_.bin(arena, size_class);
  bin.mutex_.assume_held();
  const BinFound& there = found(arena, size_class);
  std::size_t members = 0;
  for (unsigned i = 0; i < Bin::kLists; ++i) {
    if (!list(arena, size_class, i, members)) return false;
  }
  std::size_t with_free = members;
  if (bin.current_ != 0) {
    if (!is_slab_of(bin.current_, arena, size_class)) {
      return wrong("the current slab of bin {}/{} is {}, which is no slab of its", arena, size_class, bin.current_);
    }
    const Slab& slab = heap_.map_.slab(bin.current_);
    if (slab.list != 0) return wrong("the current slab of bin {}/{} is in a list", arena, size_class);
    with_free += slab.used < kSizeClasses[size_class].slots;
  }
  if (members != bin.listed_ || there.slabs != bin.use_.slabs || there.used != bin.use_.slots_used) {
    return wrong("bin {}/{} counts {} listed slabs of {} with {} used slots; there are {} of {} with {}", arena,
                 size_class, bin.listed_, bin.use_.slabs, bin.use_.slots_used, members, there.slabs, there.used);
  }
  if (with_free != there.with_free) {
    return wrong("bin {}/{} has {} slabs with free slots, but finds only {}", arena, size_class, there.with_free,
                 with_free);
  }
  return true;
}

bool BookCheck::bins() {
  for (unsigned arena = 0; arena < heap_.arenas_; ++arena) {
    for (unsigned i = 1; i < kClassCount; ++i) {
      if (!bin(arena, i)) return false;
    }
  }
  return true;
}

bool BookCheck::large() {
  const HeapMap& map = heap_.map_;
  const LargeRuns& runs = heap_.large_;
  runs.mutex_.assume_held();
  std::size_t limit = runs.offset_limit();
  if (runs.map_ != &map) return wrong("the large runs have another map");
  if (limit > map.capacity_bytes() || limit % base::kPageBytes != 0) return wrong("large runs end at {}", limit);
  std::size_t live = 0;
  for (std::size_t offset = 0; offset < limit; offset += base::kPageBytes) {
    std::size_t bytes = map.run_pages(offset).load(std::memory_order_relaxed) * base::kPageBytes;
    if (bytes == 0) continue;
    if (bytes > limit - offset) return wrong("the large object at {} ends behind all that was handed out", offset);
    live += bytes;
    ranges_.push_back({offset, offset + bytes, "a large object"});
  }
  if (live != runs.live_bytes()) return wrong("large objects count {} bytes; there are {}", runs.live_bytes(), live);
  if (runs.waiting_count_ > LargeRuns::kWaiting) return wrong("{} large runs wait", runs.waiting_count_);
  std::size_t waiting = 0;
  for (unsigned i = 0; i < runs.waiting_count_; ++i) {
    const LargeRuns::Waiting& run = runs.waiting_[i];
    std::size_t offset = map.offset_of(run.at);
    if (offset >= limit || offset % base::kPageBytes != 0 || run.bytes == 0 || run.bytes % base::kPageBytes != 0 ||
        run.bytes > limit - offset) {
      return wrong("the large run that waits at {} ({} bytes) cannot be one", fmt::ptr(run.at), run.bytes);
    }
    waiting += run.bytes;
    ranges_.push_back({offset, offset + run.bytes, "a large run that waits"});
  }
  if (waiting != runs.waiting_bytes_) return wrong("{} bytes of runs wait, not {}", waiting, runs.waiting_bytes_);
  return true;
}

bool BookCheck::ranges() {
  std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < ranges_.size(); ++i) {
    const Range &before = ranges_[i - 1], &after = ranges_[i];
    if (before.end > after.begin) {
      return wrong("{} at offset {} overlaps {} at {}", before.what, before.begin, after.what, after.begin);
    }
  }
  return true;
}

bool BookCheck::cache_bin(const ThreadCache& cache, unsigned size_class, bool living) {
  const CacheBin& bin = cache.bins[size_class];
  const SizeClass& sizes = kSizeClasses[size_class];
  std::uint32_t count = bin.count.load(std::memory_order_relaxed);
  if (bin.capacity > sizes.cache_slots || count > bin.capacity || (!living && count != 0)) {
    return wrong("a {} cache has {} slots of {} in class {}", living ? "thread's" : "spare", count, bin.capacity,
                 size_class);
  }
  if (reinterpret_cast<std::uintptr_t>(bin.slots) % alignof(void*) != 0 ||
      !kept_.holds(static_cast<const void*>(bin.slots), sizes.cache_slots * sizeof(void*))) {
    return wrong("the slots of a cache lie outside of the kept range");
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    std::size_t granule = heap_.map_.offset_of(bin.slots[i]) / kGranuleBytes;
    if (granule >= is_slab_.size() || heap_.map_.class_of_granule(granule) != size_class) {
      return wrong("a cache has {} in class {}, which lies in no such slab", fmt::ptr(bin.slots[i]), size_class);
    }
    std::size_t first = granule - heap_.map_.record(granule).granules_back;  // was looked at: in range
    std::size_t within = heap_.map_.offset_of(bin.slots[i]) - first * kGranuleBytes;
    std::uint32_t slot = sizes.slot_at(within);
    if (slot >= sizes.slots || slot * std::size_t{sizes.slot_bytes} != within) {
      return wrong("a cache has {}, which is not the start of a slot", fmt::ptr(bin.slots[i]));
    }
    if (heap_.map_.record(first).is_free(slot)) {
      return wrong("{} is both in a cache and free in its slab", fmt::ptr(bin.slots[i]));
    }
    cached_.push_back(bin.slots[i]);
  }
  return true;
}

bool BookCheck::caches(const ThreadCache* first, bool living) {
  const ThreadCache* previous = nullptr;
  for (const ThreadCache* cache = first; cache != nullptr; cache = cache->next) {
    if (reinterpret_cast<std::uintptr_t>(cache) % alignof(ThreadCache) != 0 || !kept_.holds(cache, sizeof *cache)) {
      return wrong("a thread cache lies outside of the kept range");
    }
    if (!caches_.insert(cache).second) return wrong("a thread cache is listed twice");
    if (cache->heap != &heap_ || cache->arena >= heap_.arenas_ || (living && cache->previous != previous) ||
        cache->next_look == 0 || cache->next_look >= kClassCount) {
      return wrong("the thread cache at {} is damaged", fmt::ptr(cache));
    }
    arena_threads_[cache->arena] += living;
    for (unsigned i = 1; i < kClassCount; ++i) {
      if (!cache_bin(*cache, i, living)) return false;
    }
    if (cache->bins[0].capacity != 0) return wrong("a thread cache has room in class 0");
    previous = cache;
  }
  return true;
}

bool BookCheck::cached_once() {
  std::sort(cached_.begin(), cached_.end());
  auto twice = std::adjacent_find(cached_.begin(), cached_.end());
  return twice == cached_.end() || wrong("{} is in the caches twice", fmt::ptr(*twice));
}

bool BookCheck::arenas() {
  heap_.threads_mutex_.assume_held();
  for (unsigned i = 0; i < heap_.arenas_; ++i) {
    if (arena_threads_[i] == heap_.arena_threads_[i]) continue;
    return wrong("arena {} counts {} threads; there are {}", i, heap_.arena_threads_[i], arena_threads_[i]);
  }
  return true;
}

bool Heap::check_changed(std::string& why, const KeptRange& kept, const KeepChanged& keep_changed) const {
  return BookCheck(*this, kept, why).changed(keep_changed);
}

bool Heap::check(std::string& why, const KeptRange& kept) const { return BookCheck(*this, kept, why).all(); }

}  // namespace farheap::heap
