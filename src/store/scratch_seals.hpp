// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Seals of a scratch store: in memory, and blocks keep their numbers. A forked child has a copy of them: what it and
// its parent share was sealed before the fork, and a slot that changes hands is written before it is read.
//
// Thread-safety: any thread.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "store/block_table.hpp"
#include "store/sealed_store.hpp"

namespace farheap::store {

template <class Sealer>
class ScratchSeals final : public SealedStore<Sealer> {
 public:
  using SealedStore<Sealer>::SealedStore;
  using typename SealedStore<Sealer>::Seal;

 private:
  void get_inner(std::span<Get> batch) override { get_in_pieces(*this->inner_, batch); }

  bool prepare(std::uint64_t first, std::size_t count) override FARHEAP_REQUIRES(this->stripes_) {
    for (std::size_t i = 0; i < count; ++i) {
      if (table_.make(first + i) == nullptr) return false;
    }
    return true;
  }

  void put_inner(std::span<Put> entries, std::span<const Seal> seals) override FARHEAP_REQUIRES(this->stripes_) {
    put_in_pieces(*this->inner_, entries);
    for (const auto& entry : entries) {
      const auto count = this->blocks_in(entry.from.size());
      for (std::size_t i = 0; i < count; ++i) remember(entry.block + i, seals[i], entry.outcome);
      seals = seals.subspan(count);
    }
  }

  void remember(std::uint64_t block, const Seal& seal, Outcome outcome) {
    if (outcome == Outcome::kConflict) return;
    base::LockGuard lock(doubts_lock_);
    if (outcome != Outcome::kOk) {
      // The old bytes or the new ones: nobody knows, and whichever they are, they are right.
      doubts_.emplace_back(block, seal);
    } else {
      table_.find(block)->set(seal);
      if (!doubts_.empty()) std::erase_if(doubts_, [&](const auto& doubt) { return doubt.first == block; });
    }
    any_doubt_.store(!doubts_.empty(), std::memory_order_release);
  }

  bool open_block(std::uint64_t block, std::span<std::byte> bytes) const override {
    const auto* record = table_.find(block);
    std::vector<Seal> seals;
    if (any_doubt_.load(std::memory_order_acquire)) {
      base::LockGuard lock(doubts_lock_);
      for (const auto& doubt : doubts_) {
        if (doubt.first == block) seals.push_back(doubt.second);
      }
    }
    if (seals.empty()) return record != nullptr && this->sealer_.open(block, bytes, record->get());
    if (record != nullptr) seals.push_back(record->get());
    return this->open_with_one_of(block, bytes, seals);
  }

  BlockTable<SealRecord<Seal>> table_;
  mutable ForkLock doubts_lock_;
  // Rare: writes that failed or whose answer never came.
  std::vector<std::pair<std::uint64_t, Seal>> doubts_ FARHEAP_GUARDED_BY(doubts_lock_);
  std::atomic<bool> any_doubt_{false};
};

}  // namespace farheap::store
