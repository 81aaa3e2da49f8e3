// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Multigrid for the Poisson equation -div grad u = f on the unit cube, u = 0 on its faces: V-cycles with one red-black
// Gauss-Seidel sweep before and after the coarser grid, full weighting down, linear interpolation up (Brandt 1977).
// A grid of n cells an edge has the (n + 1)^3 points of a dense array; every coarser one has half as many cells, until
// they are odd or four. Both colours are done in one pass, the black ones a plane behind the red; the residual is
// never stored, but weighted as it is computed. A V-cycle so sweeps the finest grid four times, 7/8 of all data.
//
// Thread-safety: none; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace farheap::bench {

class Grid {
 public:
  explicit Grid(std::int64_t cells);

  [[nodiscard]] std::int64_t cells() const { return cells_; }
  [[nodiscard]] std::int64_t points() const { return edge_ * edge_ * edge_; }
  [[nodiscard]] std::int64_t at(std::int64_t x, std::int64_t y, std::int64_t z) const {
    return (z * edge_ + y) * edge_ + x;
  }
  [[nodiscard]] std::span<double> u() { return {u_.get(), static_cast<std::size_t>(points())}; }
  [[nodiscard]] std::span<double> f() { return {f_.get(), static_cast<std::size_t>(points())}; }

  void clear();                           // u = 0
  void smooth();                          // one red-black Gauss-Seidel sweep
  void restrict_to(Grid& coarse) const;   // coarse.f = what is missing here from f, weighted
  void correct_from(const Grid& coarse);  // u += coarse.u, interpolated

 private:
  void smooth_plane(std::int64_t z, std::int64_t colour);
  [[nodiscard]] double residual(std::int64_t at) const;
  void residual_row(std::int64_t y, std::int64_t z, double weight, double* into) const;
  void correct_row(const Grid& coarse, std::int64_t y, std::int64_t z);

  std::int64_t cells_;
  std::int64_t edge_;
  std::unique_ptr<double[]> u_;
  std::unique_ptr<double[]> f_;
};

class Multigrid {
 public:
  // Requires: cells even and >= 4. f is made of the waves of the seed (waves.hpp), u starts as 0.
  Multigrid(std::int64_t cells, std::uint64_t seed);

  void cycle();
  [[nodiscard]] std::vector<Grid>& grids() { return grids_; }  // the finest first
  [[nodiscard]] static std::uint64_t bytes_for(std::int64_t cells);

 private:
  void descend(std::size_t level);
  std::vector<Grid> grids_;
};

}  // namespace farheap::bench
