// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory for the heap's own bookkeeping, from a source (see base/metadata_source.hpp): it is never malloc'ed.
//
// Thread-safety: SparseTable is constant once made, its entries are the user's business; MetadataArena has none.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "base/address_shift.hpp"
#include "base/metadata_source.hpp"

namespace farheap::heap {

// Where the bytes of a kept segment lie, for looking at books that may be damaged. Nothing known: all may be read.
struct KeptRange {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;

  [[nodiscard]] bool holds(const void* at, std::size_t bytes) const noexcept {
    if (begin == nullptr) return at != nullptr;
    auto first = reinterpret_cast<std::uintptr_t>(at);
    auto from = reinterpret_cast<std::uintptr_t>(begin), to = reinterpret_cast<std::uintptr_t>(end);
    return first >= from && first <= to && bytes <= to - first;
  }
};

// An array with an entry for every piece of the heap's range; only entries that are touched cost memory.
template <class T>
class SparseTable {
 public:
  explicit SparseTable(std::size_t entries, base::MetadataSource& source = base::mapped_tables()) noexcept
      : entries_(static_cast<T*>(source.reserve(entries * sizeof(T)))),
        bytes_(entries * sizeof(T)),
        mapped_bytes_(source.is_mapped() ? bytes_ : 0) {}
  SparseTable(const SparseTable&) = delete;
  SparseTable& operator=(const SparseTable&) = delete;
  ~SparseTable() {
    if (entries_ != nullptr && mapped_bytes_ != 0) munmap(static_cast<void*>(entries_), mapped_bytes_);
  }
  [[nodiscard]] bool usable() const noexcept { return entries_ != nullptr; }
  [[nodiscard]] T& operator[](std::size_t index) const noexcept { return entries_[index]; }

  // The table lies elsewhere; what its entries hold is the owner's business.
  void move(const base::AddressShift& shift) noexcept { shift(entries_); }

  // For books that may be damaged: whether it still has so many entries, all of them in the range.
  [[nodiscard]] bool is_sound(std::size_t entries, const KeptRange& kept) const noexcept {
    return bytes_ / sizeof(T) == entries && reinterpret_cast<std::uintptr_t>(entries_) % alignof(T) == 0 &&
           kept.holds(entries_, bytes_);
  }

 private:
  friend struct BookLayout;
  T* entries_;
  std::size_t bytes_;
  std::size_t mapped_bytes_;  // what the end unmaps: nothing in a kept segment
};

// Gives out zero-filled pieces and takes all back at its end.
class MetadataArena {
 public:
  explicit MetadataArena(base::MetadataSource& source = base::mapped_tables()) noexcept : source_(&source) {}
  MetadataArena(const MetadataArena&) = delete;
  MetadataArena& operator=(const MetadataArena&) = delete;
  ~MetadataArena();
  // Aligned to 64 bytes. nullptr when the machine has no memory left.
  [[nodiscard]] void* obtain(std::size_t bytes) noexcept;

  // In a new process: where more comes from.
  void attach(base::MetadataSource& source) noexcept { source_ = &source; }
  void move(const base::AddressShift& shift) noexcept;

 private:
  friend struct BookLayout;
  struct Block {
    Block* next;
    std::size_t bytes;
  };
  base::MetadataSource* source_;
  Block* blocks_ = nullptr;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace farheap::heap
