// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks ranks against a computation of its own: topic by topic, by pushing along the edges as the seed gives them,
// not by pulling along those that were stored.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "kernel.hpp"

namespace farheap::bench {

// "" or what is wrong with `ranks` after `iterations`. `scratch` is overwritten: what the kernel no longer needs, so
// that checking takes no more memory than the run. Requires: scratch as large as ranks.
[[nodiscard]] std::string verify_ranks(const Graph& graph, std::span<const Ranks> ranks, std::span<Ranks> scratch,
                                       std::uint64_t iterations);

}  // namespace farheap::bench
