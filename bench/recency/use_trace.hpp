// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file that the recorder writes and the replay reads: frames of 32-bit words, as the machine stores them.
//
//   a window     the number of runs (below kDropped), then for each: first page, count << 1 | (1 if it was written)
//   a drop       kDropped, first page, count: the program does not need these contents any more
#pragma once

#include <cstdint>

namespace farheap::bench {

inline constexpr std::uint32_t kDropped = UINT32_MAX;
inline constexpr std::uint32_t kMostRuns = 400'000;  // in a window
inline constexpr std::uint64_t kTracedBytes = 8ull << 30;

}  // namespace farheap::bench
