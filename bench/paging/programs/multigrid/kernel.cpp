// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernel.hpp"

#include <algorithm>
#include <cmath>

#include "waves.hpp"

namespace farheap::bench {
namespace {

constexpr int kCoarsestSweeps = 40;  // solve it: its grid has at most a few hundred points
constexpr std::int64_t kFewestCells = 4;

std::int64_t doubles_for(std::int64_t cells) { return 2 * (cells + 1) * (cells + 1) * (cells + 1); }

bool has_coarser(std::int64_t cells) { return cells % 2 == 0 && cells > kFewestCells; }

}  // namespace

Grid::Grid(std::int64_t cells)
    : cells_(cells), edge_(cells + 1), u_(new double[points()]()), f_(new double[points()]()) {}

void Grid::clear() { std::fill_n(u_.get(), points(), 0.0); }

double Grid::residual(std::int64_t at) const {
  const double* const u = u_.get() + at;
  const double around = u[-1] + u[1] + u[-edge_] + u[edge_] + u[-edge_ * edge_] + u[edge_ * edge_];
  return f_[at] - (6 * *u - around) * static_cast<double>(cells_ * cells_);
}

void Grid::smooth_plane(std::int64_t z, std::int64_t colour) {
  const double share = 1.0 / (6.0 * static_cast<double>(cells_ * cells_));
  for (std::int64_t y = 1; y < cells_; ++y) {
    for (std::int64_t x = 1 + (y + z + colour) % 2; x < cells_; x += 2)
      u_[at(x, y, z)] += share * residual(at(x, y, z));
  }
}

void Grid::smooth() {
  for (std::int64_t z = 1; z <= cells_; ++z) {
    if (z < cells_) smooth_plane(z, 0);
    if (z > 1) smooth_plane(z - 1, 1);  // all red points around it are done
  }
}

void Grid::residual_row(std::int64_t y, std::int64_t z, double weight, double* into) const {
  for (std::int64_t x = 1; x < cells_; ++x) into[x] += weight * residual(at(x, y, z));
}

// Full weighting: 1/2 of the point itself and 1/4 of each neighbour, along each axis.
void Grid::restrict_to(Grid& coarse) const {
  std::vector<double> row(static_cast<std::size_t>(edge_));
  for (std::int64_t z = 1; z < coarse.cells_; ++z) {
    for (std::int64_t y = 1; y < coarse.cells_; ++y) {
      std::fill(row.begin(), row.end(), 0.0);
      for (std::int64_t nz = -1; nz <= 1; ++nz) {
        for (std::int64_t ny = -1; ny <= 1; ++ny) {
          residual_row(2 * y + ny, 2 * z + nz, 0.25 / static_cast<double>((1 << std::abs(ny)) * (1 << std::abs(nz))),
                       row.data());
        }
      }
      for (std::int64_t x = 1; x < coarse.cells_; ++x) {
        coarse.f_[coarse.at(x, y, z)] = 0.5 * row[2 * x] + 0.25 * (row[2 * x - 1] + row[2 * x + 1]);
      }
    }
  }
}

void Grid::correct_row(const Grid& coarse, std::int64_t y, std::int64_t z) {
  const double* const rows[4] = {&coarse.u_[coarse.at(0, y / 2, z / 2)], &coarse.u_[coarse.at(0, (y + 1) / 2, z / 2)],
                                 &coarse.u_[coarse.at(0, y / 2, (z + 1) / 2)],
                                 &coarse.u_[coarse.at(0, (y + 1) / 2, (z + 1) / 2)]};
  const auto mean = [&](std::int64_t x) { return 0.25 * (rows[0][x] + rows[1][x] + rows[2][x] + rows[3][x]); };
  double* const row = &u_[at(0, y, z)];
  double left = mean(0);
  for (std::int64_t x = 0; x < coarse.cells_; ++x) {
    const double right = mean(x + 1);
    row[2 * x] += left;
    row[2 * x + 1] += 0.5 * (left + right);
    left = right;
  }
}

void Grid::correct_from(const Grid& coarse) {
  for (std::int64_t z = 1; z < cells_; ++z) {
    for (std::int64_t y = 1; y < cells_; ++y) correct_row(coarse, y, z);
  }
}

Multigrid::Multigrid(std::int64_t cells, std::uint64_t seed) {
  grids_.emplace_back(cells);
  while (has_coarser(grids_.back().cells())) grids_.emplace_back(grids_.back().cells() / 2);
  Grid& finest = grids_.front();
  const WaveTable right_hand(waves_of(seed), cells, eigenvalue);
  for (std::int64_t z = 1; z < cells; ++z) {
    for (std::int64_t y = 1; y < cells; ++y) {
      for (std::int64_t x = 1; x < cells; ++x) finest.f()[finest.at(x, y, z)] = right_hand.at(x, y, z);
    }
  }
}

std::uint64_t Multigrid::bytes_for(std::int64_t cells) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(doubles_for(cells)) * sizeof(double);
  return has_coarser(cells) ? bytes + bytes_for(cells / 2) : bytes;
}

void Multigrid::cycle() { descend(0); }

void Multigrid::descend(std::size_t level) {
  Grid& grid = grids_[level];
  if (level + 1 == grids_.size()) {
    for (int sweep = 0; sweep < kCoarsestSweeps; ++sweep) grid.smooth();
    return;
  }
  grid.smooth();
  grid.restrict_to(grids_[level + 1]);
  grids_[level + 1].clear();
  descend(level + 1);
  grid.correct_from(grids_[level + 1]);
  grid.smooth();
}

}  // namespace farheap::bench
