// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One record for each block number, in memory, growing on demand; records that were never made are absent. What
// decorators remember about blocks.
//
// Thread-safety: any thread may find and make; the records themselves are the user's care.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace farheap::store {

template <class Record>
class BlockTable {
 public:
  static constexpr std::uint64_t kPerChunk = std::uint64_t{1} << 16;
  static constexpr std::uint64_t kChunks = std::uint64_t{1} << 16;
  static constexpr std::uint64_t kBlocks = kPerChunk * kChunks;

  BlockTable() : chunks_(static_cast<Slot*>(std::calloc(kChunks, sizeof(Slot)))) {}
  ~BlockTable() {
    for (std::uint64_t i = 0; i < end_chunk(); ++i) std::free(chunks_[i].load());
    std::free(chunks_);
  }
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;

  // nullptr if no block near it was ever made.
  [[nodiscard]] Record* find(std::uint64_t block) const {
    if (block >= end_chunk() * kPerChunk) return nullptr;
    Record* chunk = chunks_[block / kPerChunk].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : chunk + block % kPerChunk;
  }

  // A fresh record is all zeros. nullptr if the number is too large or memory is out.
  [[nodiscard]] Record* make(std::uint64_t block) {
    if (block >= kBlocks || chunks_ == nullptr) return nullptr;
    auto& slot = chunks_[block / kPerChunk];
    if (slot.load(std::memory_order_acquire) == nullptr) {
      // Zeroed pages that cost nothing until they are touched.
      auto* fresh = static_cast<Record*>(std::calloc(kPerChunk, sizeof(Record)));
      if (fresh == nullptr) return nullptr;
      Record* none = nullptr;
      if (!slot.compare_exchange_strong(none, fresh)) std::free(fresh);
      std::uint64_t end = end_chunk_.load();
      while (end <= block / kPerChunk && !end_chunk_.compare_exchange_weak(end, block / kPerChunk + 1)) {
      }
    }
    return slot.load(std::memory_order_acquire) + block % kPerChunk;
  }

  // No record from here on was made.
  [[nodiscard]] std::uint64_t end() const { return end_chunk() * kPerChunk; }

 private:
  using Slot = std::atomic<Record*>;
  [[nodiscard]] std::uint64_t end_chunk() const { return end_chunk_.load(std::memory_order_acquire); }

  Slot* chunks_;
  std::atomic<std::uint64_t> end_chunk_{0};
};

}  // namespace farheap::store
