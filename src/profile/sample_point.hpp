// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each page of the heap has a point in it; the object that covers the point speaks for the page. Points are spread by a
// hash, so that over many pages an object is met as often as it has bytes. Nothing is remembered between calls, so an
// object is found again when it is freed. (Sampling by place instead of by time: as SHARDS samples blocks by a hash of
// their address. Waldspurger et al., "Efficient MRC Construction with SHARDS", FAST 2015.)
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

namespace farheap::profile {

inline constexpr std::uint64_t kSamplePageBytes = 4096;

// In the page of that number, from its first byte; a multiple of 16, which objects begin at.
[[nodiscard]] constexpr std::uint64_t sample_point(std::uint64_t page) {
  std::uint64_t value = (page ^ (page >> 32)) * 0xd6e8feb86659fd93u;
  value = (value ^ (value >> 32)) * 0xd6e8feb86659fd93u;
  return ((value >> 40) & 255) * 16;
}

// Pages whose point lies in [offset, offset + bytes), counted from the heap's first byte. They follow each other.
struct SampledPages {
  std::uint64_t first = 0, end = 0;
  [[nodiscard]] constexpr std::uint64_t count() const { return end - first; }
};
[[nodiscard]] constexpr SampledPages sampled_pages(std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t past = offset + bytes;
  SampledPages pages = {offset / kSamplePageBytes, past / kSamplePageBytes};
  if (pages.first * kSamplePageBytes + sample_point(pages.first) < offset) ++pages.first;
  if (pages.end * kSamplePageBytes + sample_point(pages.end) < past) ++pages.end;
  return pages;
}

}  // namespace farheap::profile
