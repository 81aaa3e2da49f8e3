// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks a solution without the matrix that was stored: the stencil is applied by its definition.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "kernel.hpp"

namespace farheap::bench {

// "" or what is wrong with x and its residual after `iterations`: the residual has to be what is missing from the
// right-hand side in every row, and the error may not be larger, in the norm of the matrix, than the bound of
// conjugate gradients for a condition number of 54: 2 ((sqrt(54) - 1) / (sqrt(54) + 1))^iterations of the first.
[[nodiscard]] std::string verify_solution(const Cube& cube, std::span<const double> x, std::span<const double> residual,
                                          std::uint64_t seed, std::uint64_t iterations);

}  // namespace farheap::bench
