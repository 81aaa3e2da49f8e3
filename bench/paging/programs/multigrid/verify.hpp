// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>

#include "kernel.hpp"

namespace farheap::bench {

// "" or what is wrong with the answer on `grid`: no point may be farther from the exact answer of the discrete
// equation (waves.hpp) than a cycle's convergence factor to the power of `cycles` allows.
[[nodiscard]] std::string verify_answer(Grid& grid, std::uint64_t seed, std::uint64_t cycles);

}  // namespace farheap::bench
