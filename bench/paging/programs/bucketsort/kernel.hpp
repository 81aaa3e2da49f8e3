// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bucket sort of 64-bit keys between two arrays of the same size: one pass counts the keys of each bucket (its upper
// bits), one moves every key to its bucket in the other array, and then each bucket, which fits in a cache, is sorted
// where it is. So a sort sweeps the first array twice and the second twice, once with as many places written to at a
// time as there are buckets. Every round mixes the keys anew (with a bijection) and sorts them back to the other array.
//
// Thread-safety: none; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace farheap::bench {

inline constexpr unsigned kBucketBits = 9;

// What a round makes of a key before it sorts.
[[nodiscard]] inline std::uint64_t remixed(std::uint64_t key) {
  key = (key ^ (key >> 29)) * 0xbf58476d1ce4e5b9ULL;
  return key ^ (key >> 32);
}

class BucketSort {
 public:
  BucketSort(std::uint64_t keys, std::uint64_t seed);

  void round();
  [[nodiscard]] std::span<std::uint64_t> keys() { return {now_.get(), count_}; }     // sorted after a round
  [[nodiscard]] std::span<std::uint64_t> spare() { return {other_.get(), count_}; }  // what the next round fills

 private:
  std::uint64_t count_;
  std::unique_ptr<std::uint64_t[]> now_;
  std::unique_ptr<std::uint64_t[]> other_;
};

}  // namespace farheap::bench
