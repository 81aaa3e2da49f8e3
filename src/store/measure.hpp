// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a store itself can do: the bound of any pager over it. Writes blocks of its own and erases them afterwards.
// Puts are measured over blocks that are there already.
//
// Thread-safety: one caller; other users of the store only distort the figures.
#pragma once

#include <cstdint>
#include <farheap/store.hpp>
#include <string>
#include <vector>

namespace farheap::store {

struct MeasureOptions {
  std::uint64_t bytes = std::uint64_t{64} << 20;  // the working range, and the most that is on the device at once
  double seconds = 10;                            // at most about that, all measurements together
  int rounds = 5;                                 // of each, for the spread
  std::uint64_t first_block = 0;                  // Requires: [first_block, + bytes) holds nothing that matters
};

struct Measurement {
  std::string name;  // "get 4 KiB, single", "put 256 KiB, random, batch"
  std::string unit;  // "us" or "MB/s"
  double median = 0, min = 0, max = 0;
};

// In a fixed order; what there was no time for is left out, what the store cannot do (counters) too. The first error
// of the store ends it, and the blocks are erased all the same.
[[nodiscard]] Result<std::vector<Measurement>> measure_store(Store& store, const MeasureOptions& options = {});

}  // namespace farheap::store
