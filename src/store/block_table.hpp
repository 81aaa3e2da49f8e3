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
  // Three levels, and leaves that are small: a heap that is touched here and there needs little.
  static constexpr std::uint64_t kPerLeaf = 64;
  static constexpr std::uint64_t kLeaves = 1024;  // of a branch
  static constexpr std::uint64_t kPerBranch = kPerLeaf * kLeaves;
  static constexpr std::uint64_t kBranches = std::uint64_t{1} << 16;
  static constexpr std::uint64_t kBlocks = kPerBranch * kBranches;

  BlockTable() : branches_(zeros<std::atomic<Branch>>(kBranches)) {}
  ~BlockTable() {
    for (std::uint64_t i = 0; i < end_branch(); ++i) {
      const Branch branch = branches_[i].load();
      for (std::uint64_t j = 0; branch != nullptr && j < kLeaves; ++j) std::free(branch[j].load());
      std::free(branch);
    }
    std::free(branches_);
  }
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;

  // nullptr if no block near it was ever made.
  [[nodiscard]] Record* find(std::uint64_t block) const {
    if (block >= end()) return nullptr;
    const Branch branch = branches_[block / kPerBranch].load(std::memory_order_acquire);
    if (branch == nullptr) return nullptr;
    const Leaf leaf = branch[block % kPerBranch / kPerLeaf].load(std::memory_order_acquire);
    return leaf == nullptr ? nullptr : leaf + block % kPerLeaf;
  }

  // A fresh record is all zeros. nullptr if the number is too large or memory is out.
  [[nodiscard]] Record* make(std::uint64_t block) {
    if (block >= kBlocks || branches_ == nullptr) return nullptr;
    const Branch branch = made(branches_[block / kPerBranch], kLeaves);
    if (branch == nullptr) return nullptr;
    std::uint64_t end = end_branch_.load();
    while (end <= block / kPerBranch && !end_branch_.compare_exchange_weak(end, block / kPerBranch + 1)) {
    }
    const Leaf leaf = made(branch[block % kPerBranch / kPerLeaf], kPerLeaf);
    return leaf == nullptr ? nullptr : leaf + block % kPerLeaf;
  }

  // No record from here on was made.
  [[nodiscard]] std::uint64_t end() const { return end_branch() * kPerBranch; }

 private:
  using Leaf = Record*;
  using Branch = std::atomic<Leaf>*;

  // Zeroed pages that cost nothing until they are touched.
  template <class T>
  static T* zeros(std::uint64_t count) {
    return static_cast<T*>(std::calloc(count, sizeof(T)));
  }
  // What is there, or `count` new ones of it.
  template <class T>
  static T* made(std::atomic<T*>& place, std::uint64_t count) {
    T* there = place.load(std::memory_order_acquire);
    if (there != nullptr) return there;
    T* const fresh = zeros<T>(count);
    if (fresh == nullptr || place.compare_exchange_strong(there, fresh)) return fresh;
    std::free(fresh);
    return there;
  }
  [[nodiscard]] std::uint64_t end_branch() const { return end_branch_.load(std::memory_order_acquire); }

  std::atomic<Branch>* branches_;
  std::atomic<std::uint64_t> end_branch_{0};
};

}  // namespace farheap::store
