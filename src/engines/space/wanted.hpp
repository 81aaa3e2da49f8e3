// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The blocks of a batch of gets, one by one and in the order of their numbers, for engines that keep a row for each;
// and what their outcomes make of the entries'.
//
// Thread-safety: plain values.
#pragma once

#include <algorithm>
#include <farheap/store.hpp>
#include <span>
#include <vector>

namespace farheap::engines {

struct WantedBlock {
  std::uint64_t block = 0;
  std::byte* to = nullptr;
  Version known = 0;
  std::size_t entry = 0;  // of the batch
  Outcome outcome = Outcome::kPending;
  Version version = 0;
};

template <class Wanted = WantedBlock>
[[nodiscard]] std::vector<Wanted> blocks_of(std::span<const Get> batch, std::size_t block_bytes) {
  std::vector<Wanted> all;
  for (std::size_t e = 0; e < batch.size(); ++e) {
    for (std::size_t at = 0; at < batch[e].into.size(); at += block_bytes) {
      Wanted one;
      one.block = batch[e].block + at / block_bytes;
      one.to = batch[e].into.data() + at;
      one.known = batch[e].known;
      one.entry = e;
      all.push_back(one);
    }
  }
  std::ranges::stable_sort(all, {}, &Wanted::block);
  return all;
}

// The worst of its blocks'; absent if any is, and kFailed if one is still pending.
template <class Wanted>
void settle_entries(std::span<const Wanted> all, std::size_t block_bytes, std::span<Get> batch) {
  const auto rank = [](Outcome outcome) {
    return outcome == Outcome::kCorrupt ? 4 : outcome == Outcome::kPending ? 3 : outcome == Outcome::kAbsent ? 2 : 1;
  };
  for (auto& entry : batch) entry.outcome = Outcome::kOk, entry.version = 0;
  for (const Wanted& one : all) {
    auto& entry = batch[one.entry];
    if (rank(one.outcome) > rank(entry.outcome) || one.outcome == Outcome::kSame) entry.outcome = one.outcome;
    const bool is_there = one.outcome == Outcome::kOk || one.outcome == Outcome::kSame;
    if (entry.into.size() == block_bytes && is_there) entry.version = one.version;
  }
  for (auto& entry : batch) {
    if (entry.outcome == Outcome::kPending) entry.outcome = Outcome::kFailed;
  }
}

}  // namespace farheap::engines
