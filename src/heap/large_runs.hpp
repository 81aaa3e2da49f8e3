// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objects above 32 KiB: each is a run of pages of its own. Some freed runs of moderate size wait to be used again,
// because faulting pages in costs more than anything else here; a big one is given back at once.
//
// Thread-safety: any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/mutex.hpp"
#include "heap/heap_map.hpp"
#include "segment/page_space.hpp"

namespace farheap::heap {

class LargeRuns {
 public:
  // Of what was given back, `most_waiting` bytes stay in memory for the next that asks.
  LargeRuns(segment::PageSpace& space, HeapMap& map, std::size_t most_waiting) noexcept
      : space_(&space), map_(&map), most_waiting_(most_waiting) {}
  // For one whose bytes came back from an earlier process, at rest.
  void attach(segment::PageSpace& space) noexcept;
  void move(const base::AddressShift& shift) noexcept;

  struct Run {
    std::byte* at = nullptr;  // nullptr: the space is full
    bool fresh = false;       // reads as zeros
  };
  // Requires: alignment a power of two, at least the page size.
  [[nodiscard]] Run obtain(std::size_t bytes, std::size_t alignment) noexcept;
  // Stops the program if no large object starts there.
  void give_back(void* at) noexcept;
  // 0 if no large object starts there.
  [[nodiscard]] std::size_t usable_bytes(const void* at) const noexcept;
  // Longer or shorter in place. False if it cannot be.
  [[nodiscard]] bool resize(void* at, std::size_t bytes) noexcept;

  void purge() noexcept;
  [[nodiscard]] std::size_t live_bytes() const noexcept { return live_bytes_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t waiting_bytes() noexcept;
  // No run was ever handed out that ends above this offset.
  [[nodiscard]] std::size_t offset_limit() const noexcept { return offset_limit_.load(std::memory_order_relaxed); }

  void lock_for_fork() noexcept FARHEAP_ACQUIRE(mutex_) { mutex_.lock(); }
  void unlock_after_fork() noexcept FARHEAP_RELEASE(mutex_) { mutex_.unlock(); }

 private:
  friend struct BookLayout;
  friend class BookCheck;
  static constexpr unsigned kWaiting = 32;
  static constexpr std::size_t kLargestBytes = 16 * base::kTiB - base::kMiB;  // of one object: see HeapMap::run_pages()
  struct Waiting {
    std::byte* at;
    std::size_t bytes;
  };
  [[nodiscard]] std::byte* take_waiting(std::size_t bytes, std::size_t alignment, std::size_t& got) noexcept;
  void note(std::byte* at, std::size_t bytes) noexcept;

  segment::PageSpace* space_;
  HeapMap* map_;
  const std::size_t most_waiting_;
  std::atomic<std::size_t> live_bytes_{0};
  std::atomic<std::size_t> offset_limit_{0};
  base::Mutex mutex_;
  Waiting waiting_[kWaiting] FARHEAP_GUARDED_BY(mutex_) = {};  // oldest first
  unsigned waiting_count_ FARHEAP_GUARDED_BY(mutex_) = 0;
  std::size_t waiting_bytes_ FARHEAP_GUARDED_BY(mutex_) = 0;
};

}  // namespace farheap::heap
