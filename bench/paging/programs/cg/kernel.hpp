// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conjugate gradients (Hestenes, Stiefel 1952) on a sparse matrix in CSR form: the 27-point stencil on a cube, as in
// HPCG, but stored explicitly. An iteration sweeps the matrix, which is nine tenths of the data and only read, and the
// four vectors; the vector that is multiplied is read within three planes of the cube.
//
// Thread-safety: none; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace farheap::bench {

inline constexpr double kDiagonal = 27.0;  // one more than the neighbours have together: condition below 54
inline constexpr double kOffDiagonal = -1.0;

// The cell (x, y, z) of a cube is row (z * edge + y) * edge + x.
struct Cube {
  std::int64_t edge;
  [[nodiscard]] std::uint64_t rows() const { return static_cast<std::uint64_t>(edge * edge * edge); }
  // Each coordinate has 3 * edge - 2 pairs of neighbours or equals.
  [[nodiscard]] std::uint64_t entries() const {
    const auto pairs = static_cast<std::uint64_t>(3 * edge - 2);
    return pairs * pairs * pairs;
  }

  // Calls visit(row of the neighbour) for up to 27 cells around (x, y, z) and itself, in ascending order.
  template <typename Visit>
  void around(std::int64_t x, std::int64_t y, std::int64_t z, Visit visit) const {
    for (std::int64_t nz = z > 0 ? z - 1 : z; nz <= z + 1 && nz < edge; ++nz) {
      for (std::int64_t ny = y > 0 ? y - 1 : y; ny <= y + 1 && ny < edge; ++ny) {
        for (std::int64_t nx = x > 0 ? x - 1 : x; nx <= x + 1 && nx < edge; ++nx) visit((nz * edge + ny) * edge + nx);
      }
    }
  }
};

// The solution that the right-hand side is made of: in [-1, 1), from the seed.
[[nodiscard]] double solution_at(std::uint64_t seed, std::uint64_t row);

// One row of the matrix applied to a vector given as a function of the row.
template <typename Vector>
[[nodiscard]] double apply_row(const Cube& cube, std::int64_t x, std::int64_t y, std::int64_t z, Vector vector) {
  double sum = 0;
  cube.around(x, y, z, [&](std::int64_t row) { sum += kOffDiagonal * vector(row); });
  return sum + (kDiagonal - kOffDiagonal) * vector((z * cube.edge + y) * cube.edge + x);
}

class ConjugateGradient {
 public:
  // Starts with x = 0 and, as right-hand side, the matrix times the solution.
  ConjugateGradient(const Cube& cube, std::uint64_t seed);

  void iterate();
  [[nodiscard]] const Cube& cube() const { return cube_; }
  [[nodiscard]] std::span<double> x() { return {x_.get(), cube_.rows()}; }
  [[nodiscard]] std::span<double> residual() { return {residual_.get(), cube_.rows()}; }
  [[nodiscard]] std::span<double> direction() { return {direction_.get(), cube_.rows()}; }
  [[nodiscard]] std::span<double> product() { return {product_.get(), cube_.rows()}; }
  [[nodiscard]] std::span<double> values() { return {values_.get(), cube_.entries()}; }
  [[nodiscard]] std::span<std::int32_t> columns() { return {columns_.get(), cube_.entries()}; }

 private:
  void fill_matrix();
  [[nodiscard]] double multiply();  // product_ = matrix * direction_; returns direction_ . product_

  Cube cube_;
  std::unique_ptr<std::int64_t[]> start_;  // of each row in values_ and columns_
  std::unique_ptr<double[]> values_;
  std::unique_ptr<std::int32_t[]> columns_;
  std::unique_ptr<double[]> x_;
  std::unique_ptr<double[]> residual_;
  std::unique_ptr<double[]> direction_;
  std::unique_ptr<double[]> product_;
  double square_ = 0;  // residual . residual
};

}  // namespace farheap::bench
