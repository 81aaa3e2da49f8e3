// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Heaps beside a common one, over the same page space: each is a *region*, whose small objects share chunks (2 MiB) of
// their own. So what is used together lies together, and what is rarely used is not kept in memory for the sake of what
// lies beside it (DESIGN.md 4.15). Which object belongs to which region is its caller's choice; where an object lies is
// found by its address. Large objects have pages of their own anyway, and belong to the common heap.
//
// Free slots are for objects of their own region. Where those of a size class become too many (what lay there was
// freed, and others are allocated elsewhere), memory matters more than order: the common heap's new objects of that
// class fill those of a region, or all regions' new objects those of the common heap, until they are few again.
//
// Thread-safety: any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <farheap/result.hpp>
#include <memory>
#include <vector>

#include "heap/heap.hpp"
#include "os/mapping.hpp"
#include "segment/page_space.hpp"

namespace farheap::heap {

class HeapRegions {
 public:
  static constexpr unsigned kCommon = 0;
  static constexpr unsigned kMostRegions = 16;
  // A class's free slots of a region, or of the common heap, may take so many bytes, or a quarter of its slabs, if that
  // is more.
  static constexpr std::size_t kSpareAlways = 4 * base::kMiB;
  static constexpr std::size_t kSpareShare = 4;
  static constexpr unsigned kLookEvery = 1u << 12;  // calls of look_at_spare() by a thread

  // Regions 1 to `regions`. The space and the common heap outlive it. kNoSpace without addresses. Calls malloc().
  // Requires: regions <= kMostRegions.
  [[nodiscard]] static Result<std::unique_ptr<HeapRegions>> make(segment::PageSpace& space, Heap& common,
                                                                 unsigned regions);

  // Where a new object of the region is to lie. Requires: region <= the number of regions.
  [[nodiscard]] Heap& heap_for(unsigned region, std::size_t bytes) noexcept {
    if (bytes > kLargestSmall) return common_;
    Heap* const spare = has_spare_[class_of(bytes)].load(std::memory_order_relaxed);
    if (region != kCommon && spare != &common_) return *regions_[region - 1]->heap;
    return spare == nullptr ? common_ : *spare;
  }
  // Where an object lies. Requires: the address is the space's.
  [[nodiscard]] Heap& heap_of(const void* object) const noexcept {
    const std::uint8_t region = region_of_[chunk_of(object)].load(std::memory_order_relaxed);
    return region == kCommon ? common_ : *regions_[region - 1]->heap;
  }
  // kCommon: none. The address is any of the space's.
  [[nodiscard]] unsigned region_of(const void* at) const noexcept {
    return region_of_[chunk_of(at)].load(std::memory_order_relaxed);
  }
  // Addresses of its chunks.
  [[nodiscard]] std::size_t bytes_of(unsigned region) const noexcept { return regions_[region - 1]->chunks.bytes(); }
  // Each run of chunks of the region, with its bytes. What comes and goes meanwhile may be told or not.
  template <class To>
  void for_each_run(unsigned region, To to) const {
    const std::size_t end = end_.load(std::memory_order_relaxed);
    for (std::size_t i = 0, first = 0; i <= end; ++i) {
      if (i < end && region_of_[i].load(std::memory_order_relaxed) == region) continue;
      if (i > first) to(space_.base() + first * kChunkBytes, (i - first) * kChunkBytes);
      first = i + 1;
    }
  }
  // As Heap::reallocate(): an object stays in its region as long as it is small.
  [[nodiscard]] void* reallocate(void* object, std::size_t bytes) noexcept;

  // To be called after an object was freed or allocated: looks now and then who has too many free slots.
  void look_at_spare() noexcept {
    if (++t_calls % kLookEvery == 0) look_now();
  }
  void look_now() noexcept;
  void purge() noexcept;

  struct Use {
    std::size_t bytes = 0;        // of addresses in slabs
    std::size_t spare_bytes = 0;  // of these, in no object
  };
  // Now, of all regions together.
  [[nodiscard]] Use use() noexcept;
  // The most that look_at_spare() has seen. Takes no lock.
  [[nodiscard]] Use most_use() const noexcept {
    return {most_bytes_.load(std::memory_order_relaxed), most_spare_bytes_.load(std::memory_order_relaxed)};
  }

  // Around a fork, behind the common heap's.
  void lock_for_fork() noexcept;
  void unlock_after_fork_parent() noexcept;
  void unlock_after_fork_child() noexcept;

 private:
  // The space, for one region: notes whose a chunk is.
  class Chunks final : public segment::PageSpace {
   public:
    Chunks(HeapRegions& all, std::uint8_t region) : all_(all), region_(region) {}
    [[nodiscard]] std::byte* base() const override { return all_.space_.base(); }
    [[nodiscard]] std::size_t capacity_bytes() const override { return all_.space_.capacity_bytes(); }
    [[nodiscard]] std::byte* obtain(std::size_t bytes, std::size_t alignment) override;
    void give_back(std::byte* at, std::size_t bytes) override;
    void discard(std::byte* at, std::size_t bytes) override { all_.space_.discard(at, bytes); }
    [[nodiscard]] bool extend(std::byte*, std::size_t, std::size_t) override { return false; }

    [[nodiscard]] std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

   private:
    void note(const std::byte* at, std::size_t bytes, std::uint8_t region);
    HeapRegions& all_;
    const std::uint8_t region_;
    std::atomic<std::size_t> bytes_{0};  // obtained
  };
  struct Region {
    Region(HeapRegions& all, std::uint8_t number)
        : chunks(all, number), heap(std::make_unique<Heap>(chunks, 0, base::mapped_tables(), nullptr, true)) {}
    Chunks chunks;
    std::unique_ptr<Heap> heap;
  };
  using RegionOfChunk = os::ReservedArray<std::atomic<std::uint8_t>>;
  HeapRegions(segment::PageSpace& space, Heap& common, RegionOfChunk region_of)
      : space_(space), common_(common), region_of_(std::move(region_of)) {}
  [[nodiscard]] std::size_t chunk_of(const void* at) const noexcept {
    return static_cast<std::size_t>(static_cast<const std::byte*>(at) - space_.base()) / kChunkBytes;
  }

  // initial-exec: reading it never calls the loader, which might call malloc.
  static thread_local unsigned t_calls __attribute__((tls_model("initial-exec")));

  segment::PageSpace& space_;
  Heap& common_;
  const RegionOfChunk region_of_;
  std::atomic<std::size_t> end_{0};  // of the chunks that were ever a region's
  std::vector<std::unique_ptr<Region>> regions_;
  // By size class, who has too many free slots: a region, which takes what would be the common heap's, or else the
  // common heap, which takes all. nullptr: nobody.
  std::array<std::atomic<Heap*>, kClassCount> has_spare_{};
  std::atomic<std::size_t> most_bytes_{0}, most_spare_bytes_{0};
};

}  // namespace farheap::heap
