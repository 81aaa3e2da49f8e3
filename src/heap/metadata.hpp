// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory for the heap's own bookkeeping, straight from mmap: it is never paged by us and never malloc'ed.
//
// Thread-safety: SparseTable is constant once made, its entries are the user's business; MetadataArena has none.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace farheap::heap {

// nullptr when the addresses cannot be had. Zero-filled; memory comes at the first touch.
[[nodiscard]] void* reserve_metadata(std::size_t bytes) noexcept;

// An array with an entry for every piece of the heap's range; only entries that are touched cost memory.
template <class T>
class SparseTable {
 public:
  explicit SparseTable(std::size_t entries) noexcept
      : bytes_(entries * sizeof(T)), entries_(static_cast<T*>(reserve_metadata(bytes_))) {}
  SparseTable(const SparseTable&) = delete;
  SparseTable& operator=(const SparseTable&) = delete;
  ~SparseTable() {
    if (entries_ != nullptr) munmap(static_cast<void*>(entries_), bytes_);
  }
  [[nodiscard]] bool usable() const noexcept { return entries_ != nullptr; }
  [[nodiscard]] T& operator[](std::size_t index) const noexcept { return entries_[index]; }

 private:
  std::size_t bytes_;
  T* entries_;
};

// Gives out zero-filled pieces and takes all back at its end.
class MetadataArena {
 public:
  MetadataArena() = default;
  MetadataArena(const MetadataArena&) = delete;
  MetadataArena& operator=(const MetadataArena&) = delete;
  ~MetadataArena();
  // Aligned to 64 bytes. nullptr when the machine has no memory left.
  [[nodiscard]] void* obtain(std::size_t bytes) noexcept;

 private:
  struct Block {
    Block* next;
    std::size_t bytes;
  };
  Block* blocks_ = nullptr;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace farheap::heap
