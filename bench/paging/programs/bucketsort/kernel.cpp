// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernel.hpp"

#include <algorithm>
#include <array>

#include "common/program.hpp"

namespace farheap::bench {
namespace {

constexpr std::size_t kBuckets = std::size_t{1} << kBucketBits;

std::size_t bucket_of(std::uint64_t key) { return key >> (64 - kBucketBits); }

}  // namespace

BucketSort::BucketSort(std::uint64_t keys, std::uint64_t seed)
    : count_(keys), now_(new std::uint64_t[keys]), other_(new std::uint64_t[keys]) {
  for (std::uint64_t i = 0; i < keys; ++i) now_[i] = random_at(seed, i);
}

void BucketSort::round() {
  std::array<std::uint64_t, kBuckets + 1> start{};
  for (std::uint64_t& key : keys()) {
    key = remixed(key);
    ++start[bucket_of(key) + 1];
  }
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) start[bucket + 1] += start[bucket];
  std::array<std::uint64_t, kBuckets> next{};
  std::copy_n(start.begin(), kBuckets, next.begin());
  for (const std::uint64_t key : keys()) other_[next[bucket_of(key)]++] = key;
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    std::sort(other_.get() + start[bucket], other_.get() + start[bucket + 1]);
  }
  now_.swap(other_);
}

}  // namespace farheap::bench
