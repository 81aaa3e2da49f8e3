// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The slabs of one size class in one arena. Slots leave and come back in batches; slots come from the fullest
// slabs first, so that the others can become empty and leave.
//
// Thread-safety: any thread; one lock a bin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>

#include "heap/bin_lock.hpp"
#include "heap/chunk_pool.hpp"
#include "heap/heap_map.hpp"
#include "heap/slab.hpp"

namespace farheap::heap {

struct BinUse {
  std::size_t slabs = 0;
  std::size_t slots_used = 0;
};

class alignas(64) Bin {
 public:
  // Puts up to `wanted` free slots into `out`; returns how many, 0 only when the space is full.
  [[nodiscard]] unsigned refill(HeapMap& map, ChunkPool& pool, unsigned size_class, unsigned owner, void** out,
                                unsigned wanted) noexcept;

  // Takes back those of `slots` that this bin (arena `owner`) owns, and moves the others to the front; returns how
  // many those are. Stops the program at a pointer that is no slot in use.
  // Requires: class_at() of every pointer was size_class.
  [[nodiscard]] unsigned take_back(HeapMap& map, ChunkPool& pool, unsigned size_class, unsigned owner, void** slots,
                                   unsigned count) noexcept;

  // For one whose bytes came back from an earlier process, at rest.
  void attach() noexcept { ::new (&mutex_) BinLock; }

  [[nodiscard]] BinUse use() noexcept;
  void lock_for_fork() noexcept FARHEAP_ACQUIRE(mutex_) { mutex_.lock(); }
  void unlock_after_fork() noexcept FARHEAP_RELEASE(mutex_) { mutex_.unlock(); }

 private:
  friend struct BookLayout;
  friend class BookCheck;
  static constexpr unsigned kLists = 4;  // by quarters of fullness; the fullest last

  void link(HeapMap& map, SlabIndex index, unsigned list) noexcept FARHEAP_REQUIRES(mutex_);
  void unlink(HeapMap& map, SlabIndex index) noexcept FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] SlabIndex fullest(HeapMap& map) noexcept FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] static SlabIndex open_slab(HeapMap& map, ChunkPool& pool, unsigned size_class, unsigned owner) noexcept;
  [[nodiscard]] SlabIndex after_put_back(HeapMap& map, SlabIndex index, const SizeClass& sizes) noexcept
      FARHEAP_REQUIRES(mutex_);

  BinLock mutex_;  // guards the records of the slabs that are owned, too
  // Slots come from here; in no list.
  SlabIndex current_ FARHEAP_GUARDED_BY(mutex_) = 0;
  // Slabs with free slots; full ones are in none.
  SlabIndex lists_[kLists] FARHEAP_GUARDED_BY(mutex_) = {};
  std::uint32_t listed_ FARHEAP_GUARDED_BY(mutex_) = 0;
  BinUse use_ FARHEAP_GUARDED_BY(mutex_);
};

}  // namespace farheap::heap
