// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The store of a kept heap as blocks that can be changed, and its checksums made to fit again.
//
// Thread-safety: none.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include "segment/versions.hpp"

namespace farheap::test {

inline std::unique_ptr<Store> new_store() {
  auto store = open_store("mem:", {.block_bytes = base::kPageBytes});
  if (!store) std::abort();
  return std::move(*store);
}

class HeapImage {
 public:
  using Words = segment::BlockWords;

  explicit HeapImage(Store& store) {
    const auto superblock = segment::read_superblock(store);
    if (!superblock) std::abort();
    base_ = superblock->content.base_address;
    capacity_ = superblock->content.capacity_pages * base::kPageBytes;
    blocks_.resize(superblock->content.end_slot);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      Get get;
      get.block = i;
      get.into = std::as_writable_bytes(std::span(blocks_[i]));
      (void)store.get({&get, 1});
    }
    for (std::size_t i = 0; i < segment::kSuperblocks; ++i) {
      books_.insert(i);
      for (const std::size_t root : kRoots) note_books(segment::SlotRef(blocks_[i][root]), blocks_[i][root + 2]);
      note_snapshots(segment::SlotRef(blocks_[i][kSnapshots]), blocks_[i][kSnapshots + 2]);
    }
    books_in_order_.assign(books_.begin(), books_.end());
  }

  // 12 bytes, as heap_open_fuzz.cpp has them.
  void change(const std::uint8_t* data, bool books_only) {
    std::uint16_t block, word;
    std::uint64_t value;
    std::memcpy(&block, data, sizeof block);
    std::memcpy(&word, data + 2, sizeof word);
    std::memcpy(&value, data + 4, sizeof value);
    std::uint64_t& at =
        blocks_[books_only ? books_in_order_[block % books_in_order_.size()] : block % blocks_.size()][word % 512];
    switch (word >> 9 & 3) {
      case 0: at = value; break;
      case 1: at ^= value; break;
      case 2: at += value; break;
      default: at = base_ + value % capacity_; break;
    }
  }

  void cut(std::size_t blocks) { blocks_.resize(std::min(blocks_.size(), blocks)); }

  void mend() {
    for (std::size_t i = 0; i < segment::kSuperblocks; ++i) {
      int patience = 500;
      Words& words = blocks_[i];
      for (const std::size_t root : kRoots) {
        words[root + 1] = mend(segment::SlotRef(words[root]), words[root + 2], patience);
      }
      words[511] = XXH3_64bits(words.data(), 511 * 8);
    }
  }

  [[nodiscard]] std::unique_ptr<Store> as_store() const {
    auto store = new_store();
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      Put put;
      put.block = i;
      put.from = std::as_bytes(std::span(blocks_[i]));
      if (!store->put({&put, 1})) std::abort();
    }
    return store;
  }

 private:
  static constexpr std::size_t kSnapshots = 19;
  static constexpr std::size_t kRoots[] = {13, 16, kSnapshots, 23};  // of trees, in a superblock: docs/formats.md

  [[nodiscard]] bool is_slot(segment::SlotRef at) const {
    return at.slot() >= segment::kSuperblocks && at.slot() < blocks_.size();
  }
  void note_books(segment::SlotRef at, std::uint64_t level) {
    if (!is_slot(at)) return;
    books_.insert(at.slot());
    for (std::size_t i = 0; level != 0 && i < 256; ++i) {
      note_books(segment::SlotRef(blocks_[at.slot()][2 * i]), level - 1);
    }
  }
  // Records of 32 words: two more trees each.
  void note_snapshots(segment::SlotRef at, std::uint64_t level) {
    if (level != 0 || !is_slot(at)) return;  // there are few
    for (std::size_t record = 0; record < 512; record += 32) {
      const Words& words = blocks_[at.slot()];
      for (const std::size_t root : {16u, 19u}) {
        note_books(segment::SlotRef(words[record + root]), words[record + root + 2]);
      }
    }
  }
  // Makes the checksums of a tree fit, as deep as it goes; returns that of its top.
  std::uint64_t mend(segment::SlotRef at, std::uint64_t level, int& patience) {
    if (!is_slot(at) || --patience < 0) return 0;
    Words& words = blocks_[at.slot()];
    for (std::size_t i = 0; level != 0 && level <= segment::BlockTree::kMostLevels && i < 256; ++i) {
      if (words[2 * i] != 0) words[2 * i + 1] = mend(segment::SlotRef(words[2 * i]), level - 1, patience);
    }
    return XXH3_64bits(words.data(), sizeof words);
  }

  std::uint64_t base_ = 0, capacity_ = 0;
  std::vector<Words> blocks_;
  std::set<std::uint64_t> books_;  // blocks that the checksums guard
  std::vector<std::uint64_t> books_in_order_;
};

}  // namespace farheap::test
