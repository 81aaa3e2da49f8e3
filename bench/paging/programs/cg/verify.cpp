// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "verify.hpp"

#include <fmt/format.h>

#include <cmath>

namespace farheap::bench {
namespace {

constexpr double kCondition = 54.0;  // Gershgorin: the eigenvalues lie between 1 and 53
constexpr double kRounding = 1e-11;  // values are of the order of 1 to 54, and errors add up over the iterations

}  // namespace

std::string verify_solution(const Cube& cube, std::span<const double> x, std::span<const double> residual,
                            std::uint64_t seed, std::uint64_t iterations) {
  double error_square = 0;  // in the norm of the matrix
  double first_square = 0;
  std::uint64_t row = 0;
  for (std::int64_t z = 0; z < cube.edge; ++z) {
    for (std::int64_t y = 0; y < cube.edge; ++y) {
      for (std::int64_t at = 0; at < cube.edge; ++at, ++row) {
        const double exact = solution_at(seed, row);
        const double error = exact - x[row];
        const double right_hand = apply_row(cube, at, y, z, [&](auto other) { return solution_at(seed, other); });
        const double missing = right_hand - apply_row(cube, at, y, z, [&](auto other) { return x[other]; });
        if (!(std::abs(missing - residual[row]) < kRounding)) {
          return fmt::format("row {} misses its right-hand side by {}, its residual says {}", row, missing,
                             residual[row]);
        }
        error_square += error * missing;
        first_square += exact * right_hand;
      }
    }
  }
  const double root = std::sqrt(kCondition);
  const double bound = 2 * std::pow((root - 1) / (root + 1), static_cast<double>(iterations));
  const double left = std::sqrt(error_square / first_square);
  if (iterations > 0 && left < bound + kRounding) return "";
  return fmt::format("{} of the first error is left, the bound after {} iterations is {}", left, iterations, bound);
}

}  // namespace farheap::bench
