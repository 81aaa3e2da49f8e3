// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Granules (64 KiB) for slabs, cut from chunks (2 MiB, a huge page): what is needed together in time lies together.
// A freed granule keeps its memory for a while ("dirty") and is the first to be used again; when too many wait,
// their pages are dropped. A chunk that is all free goes back to the page space, except for a few.
//
// How many are too many is learnt. Threads that pass objects to each other free and take granules in turns, as many as
// are on their way: what was dropped and soon had to be made anew should have waited, and what waited for long without
// being taken need not. So the allowance grows by what is taken from pages that were dropped, up to a share for each
// thread, and shrinks by what nobody took.
//
// Thread-safety: any thread. The page space is called with the lock released where pages are dropped.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/mutex.hpp"
#include "heap/bin_lock.hpp"
#include "heap/index_set.hpp"
#include "heap/metadata.hpp"
#include "heap/size_classes.hpp"
#include "segment/page_space.hpp"

namespace farheap::heap {

class ChunkPool {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};
  // So many granules may wait with their memory: 8 MiB, or 1/32 of what is in use; and 8 MiB a thread, as far as that
  // was learnt. Less, and a producer and a consumer that pass a few MiB between them drop and fault in the same pages
  // for ever (40 times the madvise calls with 2 MiB; 2.3 million page faults for 16 million objects that eight couples
  // pass, with 8 MiB for all).
  static constexpr std::uint32_t kDirtyAlways = 128;
  static constexpr std::size_t kDirtyShare = 32;
  static constexpr std::size_t kKeptEmpty = kDirtyAlways / kGranulesPerChunk;  // chunks; more with the allowance

  explicit ChunkPool(segment::PageSpace& space, base::MetadataSource& source = base::mapped_tables()) noexcept;
  // For one whose bytes came back from an earlier process, at rest.
  void attach(segment::PageSpace& space) noexcept;
  void move(const base::AddressShift& shift) noexcept {
    mutex_.assume_held();  // at rest
    chunks_.move(shift);
    with_free_.move(shift);
    with_dirty_.move(shift);
  }
  [[nodiscard]] bool usable() const noexcept;

  // The number of the first of `count` (1 to 8) granules in a row; kNone when the space is full.
  [[nodiscard]] std::size_t obtain(unsigned count) noexcept;
  void give_back(std::size_t granule, unsigned count) noexcept;

  // How many threads use the heap: so many shares may be learnt.
  void serve(std::size_t threads) noexcept;

  // Drops the pages of all free granules and gives all empty chunks back.
  void purge() noexcept;

  [[nodiscard]] std::size_t dirty_bytes() noexcept;
  [[nodiscard]] std::size_t used_bytes() noexcept;
  // No chunk at or above this number was ever used.
  // Requires: it is locked for a fork, or at rest.
  [[nodiscard]] std::size_t chunk_limit() const noexcept FARHEAP_REQUIRES(mutex_) { return chunk_limit_; }
  void assume_at_rest() const FARHEAP_ASSERT_CAPABILITY(mutex_) {}

  void lock_for_fork() noexcept FARHEAP_ACQUIRE(mutex_) { mutex_.lock(); }
  void unlock_after_fork() noexcept FARHEAP_RELEASE(mutex_) { mutex_.unlock(); }

 private:
  friend struct BookLayout;
  friend class BookCheck;
  // One bit a granule. dirty is a part of free; bits in neither mask are used, or just being dropped.
  struct Chunk {
    std::uint32_t free;
    std::uint32_t dirty;
  };
  static constexpr std::uint32_t kLookEvery = 8;  // calls, for each granule of the allowance
  static constexpr std::uint32_t kAll = ~std::uint32_t{0};
  static_assert(kGranulesPerChunk == 32);

  [[nodiscard]] std::size_t take(std::size_t chunk, std::uint32_t from, unsigned count) noexcept
      FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] std::size_t take_lowest(unsigned count) noexcept FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] bool add_chunk() noexcept FARHEAP_REQUIRES(mutex_);
  void note_free(std::size_t chunk, std::uint32_t granules, bool dirty) noexcept FARHEAP_REQUIRES(mutex_);
  void withdraw(std::size_t chunk, std::uint32_t granules) noexcept FARHEAP_REQUIRES(mutex_);
  void give_back_if_spare(std::size_t chunk, std::size_t keep) noexcept FARHEAP_REQUIRES(mutex_);
  void learn(std::size_t granules_made_anew) noexcept FARHEAP_REQUIRES(mutex_);
  void drop_down_to(std::size_t keep) noexcept FARHEAP_REQUIRES(mutex_);
  void drop(std::size_t chunk, std::uint32_t granules) noexcept FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] std::size_t dirty_limit() const noexcept FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] std::size_t kept_empty() const noexcept FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] std::byte* address(std::size_t chunk, unsigned granule) const noexcept;

  // How much may wait is learnt in each process anew: attach() resets it, and in the books it means nothing.
  struct Allowance {
    std::uint32_t granules = kDirtyAlways;
    std::uint32_t most = kDirtyAlways;
    std::uint32_t dropped = 0;  // and not made anew since
    std::uint32_t calls = 0;    // of obtain(), since the last look
    std::uint32_t idle = 0;     // so many waited all the time since then
  };

  segment::PageSpace* space_;
  BinLock mutex_;  // it spins for a moment: what is done under it is short
  Allowance allowance_ FARHEAP_GUARDED_BY(mutex_);
  [[maybe_unused]] std::byte unused_[16] = {};  // of the books' layout
  SparseTable<Chunk> chunks_ FARHEAP_GUARDED_BY(mutex_);
  IndexSet with_free_ FARHEAP_GUARDED_BY(mutex_);
  IndexSet with_dirty_ FARHEAP_GUARDED_BY(mutex_);
  std::size_t dirty_granules_ FARHEAP_GUARDED_BY(mutex_) = 0;
  std::size_t used_granules_ FARHEAP_GUARDED_BY(mutex_) = 0;
  std::size_t empty_chunks_ FARHEAP_GUARDED_BY(mutex_) = 0;
  std::size_t chunk_limit_ FARHEAP_GUARDED_BY(mutex_) = 0;
};

}  // namespace farheap::heap
