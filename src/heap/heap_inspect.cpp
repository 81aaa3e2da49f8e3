// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Looking at a whole heap: statistics, the walk over its objects, and standing still for fork().
#include <algorithm>
#include <unordered_set>

#include "base/mutex.hpp"
#include "heap/heap.hpp"

namespace farheap::heap {

void Heap::purge() noexcept {
  {
    base::GatePass pass(gate_);
    pool_.purge();
  }
  base::GatePass pass(gate_);
  large_.purge();
}

Statistics Heap::statistics() noexcept {
  Statistics sum;
  if (!usable_) return sum;
  {
    base::LockGuard lock(threads_mutex_);
    for (ThreadCache* cache = living_; cache != nullptr; cache = cache->next) {
      ++sum.thread_caches;
      for (unsigned i = 1; i < kClassCount; ++i) {
        sum.classes[i].cached += cache->bins[i].count.load(std::memory_order_relaxed);
      }
    }
  }
  for (unsigned i = 1; i < kClassCount; ++i) {
    const SizeClass& sizes = kSizeClasses[i];
    ClassStatistics& of_class = sum.classes[i];
    of_class.slot_bytes = sizes.slot_bytes;
    std::size_t used = 0;
    for (unsigned arena = 0; arena < arenas_; ++arena) {
      BinUse use = bin(arena, i).use();
      of_class.slabs += use.slabs;
      used += use.slots_used;
    }
    of_class.slots = of_class.slabs * sizes.slots;
    of_class.live = used - std::min(used, of_class.cached);  // the two were read at different moments
    sum.live_bytes += of_class.live * sizes.slot_bytes;
    sum.cached_bytes += of_class.cached * sizes.slot_bytes;
    sum.slab_bytes += of_class.slabs * sizes.granules * kGranuleBytes;
  }
  sum.large_bytes = large_.live_bytes();
  sum.live_bytes += sum.large_bytes;
  sum.waiting_bytes = pool_.dirty_bytes() + large_.waiting_bytes();
  return sum;
}

void Heap::walk_slabs(Visit visit, void* context) const noexcept {
  pool_.assume_at_rest();  // or locked, by for_each_object()
  std::size_t limit = pool_.chunk_limit() * kChunkBytes;
  for (std::size_t offset = 0; offset < limit;) {
    unsigned size_class = map_.class_at(offset);
    if (size_class == 0) {
      offset += kGranuleBytes;
      continue;
    }
    const SizeClass& sizes = kSizeClasses[size_class];
    const Slab& slab = map_.slab(map_.slab_at(offset));
    for (std::uint32_t slot = 0; slot < sizes.slots; ++slot) {
      if (!slab.is_free(slot))
        visit(context, map_.base() + offset + std::size_t{slot} * sizes.slot_bytes, sizes.slot_bytes);
    }
    offset += sizes.granules * kGranuleBytes;
  }
}

void Heap::walk_large(Visit visit, void* context) const noexcept {
  std::size_t limit = large_.offset_limit();
  for (std::size_t offset = 0; offset < limit;) {
    std::size_t bytes = map_.run_pages(offset).load(std::memory_order_relaxed) * base::kPageBytes;
    if (bytes > 0) visit(context, map_.base() + offset, bytes);
    offset += std::max(bytes, base::kPageBytes);
  }
}

void Heap::for_each_object(Visit visit, void* context) noexcept {
  if (!usable_) return;
  lock_for_fork();
  walk_slabs(visit, context);
  walk_large(visit, context);
  unlock_after_fork_parent();
}

void Heap::visit_at_rest(const std::function<void(const void*, std::size_t)>& visit) const {
  struct Rest {
    const std::function<void(const void*, std::size_t)>& visit;
    std::unordered_set<const void*> cached;
  } rest{visit, {}};
  threads_mutex_.assume_held();  // at rest
  for (const ThreadCache* first : {living_, spare_}) {
    for (const ThreadCache* cache = first; cache != nullptr; cache = cache->next) {
      for (const CacheBin& bin : cache->bins) {
        for (std::uint32_t i = 0; i < bin.count.load(std::memory_order_relaxed); ++i) rest.cached.insert(bin.slots[i]);
      }
    }
  }
  const Visit forward = [](void* context, void* object, std::size_t bytes) {
    const auto& to = *static_cast<Rest*>(context);
    if (!to.cached.contains(object)) to.visit(object, bytes);
  };
  walk_slabs(forward, &rest);
  walk_large(forward, &rest);
}

// The gate first: who waits for a lock is inside it, and would be missing in the child.
// The order in which locks are taken everywhere: threads, bins, chunk pool; large runs alone.
void Heap::lock_for_fork() noexcept {
  if (gate_ != nullptr) gate_->close();
  threads_mutex_.lock();
  for (unsigned i = 0; usable_ && i < arenas_ * kClassCount; ++i) bins_[i].lock_for_fork();
  pool_.lock_for_fork();
  large_.lock_for_fork();
}

void Heap::unlock_after_fork_parent() noexcept {
  large_.unlock_after_fork();
  pool_.unlock_after_fork();
  for (unsigned i = 0; usable_ && i < arenas_ * kClassCount; ++i) bins_[i].unlock_after_fork();
  threads_mutex_.unlock();
  if (gate_ != nullptr) gate_->open();
}

}  // namespace farheap::heap
