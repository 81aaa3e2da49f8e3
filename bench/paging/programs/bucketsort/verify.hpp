// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace farheap::bench {

// "" or what is wrong with `sorted`, which has to hold, in order, the keys that `seed` gives after `rounds` rounds.
// Equality of the two multisets is decided by sums of a hash of each key, which needs no memory.
[[nodiscard]] std::string verify_sorted(std::span<const std::uint64_t> sorted, std::uint64_t seed,
                                        std::uint64_t rounds);

}  // namespace farheap::bench
