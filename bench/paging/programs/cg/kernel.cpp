// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernel.hpp"

#include <algorithm>

#include "common/program.hpp"

namespace farheap::bench {

double solution_at(std::uint64_t seed, std::uint64_t row) {
  return static_cast<double>(random_at(seed, row) >> 11) * 0x1p-52 - 1.0;
}

ConjugateGradient::ConjugateGradient(const Cube& cube, std::uint64_t seed)
    : cube_(cube),
      start_(new std::int64_t[cube.rows() + 1]),
      values_(new double[cube.entries()]),
      columns_(new std::int32_t[cube.entries()]),
      x_(new double[cube.rows()]()),
      residual_(new double[cube.rows()]),
      direction_(new double[cube.rows()]),
      product_(new double[cube.rows()]) {
  fill_matrix();
  for (std::uint64_t row = 0; row < cube_.rows(); ++row) direction_[row] = solution_at(seed, row);
  (void)multiply();  // the right-hand side is the first residual, as x is 0
  for (std::uint64_t row = 0; row < cube_.rows(); ++row) {
    residual_[row] = direction_[row] = product_[row];
    square_ += product_[row] * product_[row];
  }
}

void ConjugateGradient::fill_matrix() {
  std::int64_t entry = 0;
  std::int64_t row = 0;
  for (std::int64_t z = 0; z < cube_.edge; ++z) {
    for (std::int64_t y = 0; y < cube_.edge; ++y) {
      for (std::int64_t x = 0; x < cube_.edge; ++x, ++row) {
        start_[row] = entry;
        cube_.around(x, y, z, [&](std::int64_t column) {
          columns_[entry] = static_cast<std::int32_t>(column);
          values_[entry++] = column == row ? kDiagonal : kOffDiagonal;
        });
      }
    }
  }
  start_[row] = entry;
}

double ConjugateGradient::multiply() {
  double dot = 0;
  const std::uint64_t rows = cube_.rows();
  for (std::uint64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (std::int64_t entry = start_[row]; entry < start_[row + 1]; ++entry) {
      sum += values_[entry] * direction_[columns_[entry]];
    }
    product_[row] = sum;
    dot += direction_[row] * sum;
  }
  return dot;
}

void ConjugateGradient::iterate() {
  const double step = square_ / multiply();
  const std::uint64_t rows = cube_.rows();
  double square = 0;
  for (std::uint64_t row = 0; row < rows; ++row) {
    x_[row] += step * direction_[row];
    residual_[row] -= step * product_[row];
    square += residual_[row] * residual_[row];
  }
  const double back = square / square_;
  for (std::uint64_t row = 0; row < rows; ++row) direction_[row] = residual_[row] + back * direction_[row];
  square_ = square;
}

}  // namespace farheap::bench
