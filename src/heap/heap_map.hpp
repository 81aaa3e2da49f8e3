// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From an address to what lies there: the tables over the heap's range.
//
// Thread-safety: an entry is written before the first object there is handed out and stays until the last one is
// freed, so whoever holds an object may read its entries without a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "heap/metadata.hpp"
#include "heap/size_classes.hpp"
#include "heap/slab.hpp"

namespace farheap::heap {

class HeapMap {
 public:
  HeapMap(std::byte* base, std::size_t capacity_bytes, base::MetadataSource& source = base::mapped_tables()) noexcept
      : base_(base),
        capacity_(capacity_bytes),
        classes_(capacity_bytes / kGranuleBytes + 1, source),
        slabs_(capacity_bytes / kGranuleBytes + 1, source),
        bits_beside_(capacity_bytes / kGranuleBytes + 1, source),
        run_pages_(capacity_bytes / base::kPageBytes + 1, source) {}

  [[nodiscard]] bool usable() const noexcept {
    return classes_.usable() && slabs_.usable() && bits_beside_.usable() && run_pages_.usable();
  }
  [[nodiscard]] std::byte* base() const noexcept { return base_; }
  [[nodiscard]] std::size_t capacity_bytes() const noexcept { return capacity_; }

  // The distance from the base; at least capacity_bytes() for addresses that are not the heap's.
  [[nodiscard]] std::size_t offset_of(const void* at) const noexcept {
    return reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(base_);
  }

  // 0 where no slab lies. Requires: offset < capacity_bytes().
  [[nodiscard]] unsigned class_at(std::size_t offset) const noexcept {
    return classes_[offset >> kGranuleShift].load(std::memory_order_relaxed);
  }

  // Requires: class_at(offset) != 0.
  [[nodiscard]] SlabIndex slab_at(std::size_t offset) const noexcept {
    std::size_t granule = offset >> kGranuleShift;
    return static_cast<SlabIndex>(granule - slabs_[granule].granules_back + 1);
  }
  [[nodiscard]] Slab& slab(SlabIndex index) const noexcept { return slabs_[index - 1]; }
  [[nodiscard]] std::size_t slab_offset(SlabIndex index) const noexcept {
    return std::size_t{index - 1} << kGranuleShift;
  }

  void open_slab(SlabIndex index, unsigned size_class, unsigned owner) noexcept {
    slab(index).open(size_class, owner, bits_beside_[index - 1].words);
    for (unsigned i = 0; i < kSizeClasses[size_class].granules; ++i) {
      if (i > 0) slabs_[index - 1 + i].granules_back = static_cast<std::uint8_t>(i);
      classes_[index - 1 + i].store(static_cast<std::uint8_t>(size_class), std::memory_order_relaxed);
    }
  }
  void close_slab(SlabIndex index) noexcept {
    for (unsigned i = 0; i < kSizeClasses[slab(index).size_class].granules; ++i) {
      classes_[index - 1 + i].store(0, std::memory_order_relaxed);
    }
  }

  // How many pages the run of a large object has that starts here; 0: none starts here.
  [[nodiscard]] std::atomic<std::uint32_t>& run_pages(std::size_t offset) const noexcept {
    return run_pages_[offset >> base::kPageShift];
  }

  void move(const base::AddressShift& shift) noexcept {
    shift(base_);
    classes_.move(shift);
    slabs_.move(shift);
    bits_beside_.move(shift);
    run_pages_.move(shift);
  }

  // For books that may be damaged.
  [[nodiscard]] bool is_sound(const KeptRange& kept) const noexcept {
    std::size_t granules = capacity_ / kGranuleBytes;
    return classes_.is_sound(granules + 1, kept) && slabs_.is_sound(granules + 1, kept) &&
           bits_beside_.is_sound(granules + 1, kept) && run_pages_.is_sound(capacity_ / base::kPageBytes + 1, kept);
  }
  // Requires: granules below the capacity.
  [[nodiscard]] unsigned class_of_granule(std::size_t granule) const noexcept {
    return classes_[granule].load(std::memory_order_relaxed);
  }
  [[nodiscard]] const Slab& record(std::size_t granule) const noexcept { return slabs_[granule]; }
  [[nodiscard]] const std::uint64_t* words_beside(std::size_t granule) const noexcept {
    return bits_beside_[granule].words;
  }

 private:
  friend struct BookLayout;
  struct BitsBeside {
    std::uint64_t words[Slab::kWordsBeside];
  };
  std::byte* base_;
  std::size_t capacity_;
  SparseTable<std::atomic<std::uint8_t>> classes_;
  SparseTable<Slab> slabs_;
  SparseTable<BitsBeside> bits_beside_;
  SparseTable<std::atomic<std::uint32_t>> run_pages_;
};

}  // namespace farheap::heap
