// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All that a store holds, copied into another: whatever the two engines are.
//
// Thread-safety: nobody else writes to either of the two.
#pragma once

#include <cstdint>
#include <farheap/store.hpp>
#include <functional>
#include <vector>

namespace farheap::store {

struct Copied {
  std::uint64_t blocks = 0;
  std::uint64_t counters = 0;
};
// `progress` gets bytes done, and all there are to do (0: nobody knows).
using CopyProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;
// Asked between two batches: true ends the work with kUnavailable.
using CopyStop = std::function<bool()>;

// Blocks from kFirstLease on go with no copy. Blocks 1 and 0 go last, when all others are durable: they are the roots
// of a heap, and without them there is none. Until then block 0 of `to` says that it is not finished (marks.hpp);
// whoever breaks off removes it. Requires: both have blocks of one size (kInvalidArgument), and `to` is empty.
// kUnavailable if the engine of `from` cannot tell what it holds; kConflict if somebody else writes to `to`: it is left
// as it is.
[[nodiscard]] Result<Copied> copy_contents(Store& from, Store& to, const CopyProgress& progress = {},
                                           const CopyStop& stop = {});

// Requires: `block` is not before the end of the last run.
inline void add_block(std::vector<BlockRun>& runs, std::uint64_t block) {
  if (!runs.empty() && runs.back().first + runs.back().count == block) {
    ++runs.back().count;
  } else {
    runs.push_back({block, 1});
  }
}

}  // namespace farheap::store
