// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which blocks of a heap's store are for what, as far as stores know: those that copy one, and those that lay its two
// parts into two stores.
//
// Thread-safety: constants.
#pragma once

#include <cstdint>

namespace farheap::store {

inline constexpr std::uint64_t kRoots = 2;  // the first blocks: without them there is no heap
// Blocks from here on say who has the heap open (share/segment_leases.hpp).
inline constexpr std::uint64_t kFirstLease = std::uint64_t{1} << 60;

}  // namespace farheap::store
