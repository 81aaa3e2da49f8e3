// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lattice Boltzmann, D3Q19, single relaxation time (Qian, d'Humieres, Lallemand 1992), periodic box, two grids
// that change roles after every step. A cell's 19 populations lie together (as in SPEC's lbm), so a step sweeps
// both grids in address order and reads three planes of the older one.
//
// Thread-safety: none; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace farheap::bench {

inline constexpr int kDirections = 19;
inline constexpr double kRelaxation = 1.85;  // 1/tau: viscosity (tau - 1/2) / 3 = 0.0135

struct Velocity {
  int x, y, z;
  double weight;
};
extern const std::array<Velocity, kDirections> kVelocities;

struct Box {
  std::int64_t nx, ny, nz;
  [[nodiscard]] std::int64_t cells() const { return nx * ny * nz; }
  [[nodiscard]] std::uint64_t grid_bytes() const {
    return static_cast<std::uint64_t>(cells()) * kDirections * sizeof(double);
  }
};

class Lattice {
 public:
  // Requires: every edge >= 3. Starts as a shear wave with a small disturbance from the seed.
  Lattice(const Box& box, std::uint64_t seed);

  void step();  // streams and collides once
  [[nodiscard]] const double* populations() const { return now_.get(); }
  // The grid that the next step reads, which holds the state, and the one that it writes.
  [[nodiscard]] std::span<std::byte> older_grid() { return grid_of(now_); }
  [[nodiscard]] std::span<std::byte> newer_grid() { return grid_of(next_); }
  [[nodiscard]] const Box& box() const { return box_; }

 private:
  std::span<std::byte> grid_of(const std::unique_ptr<double[]>& grid) const {
    return std::as_writable_bytes(std::span(grid.get(), static_cast<std::size_t>(box_.cells()) * kDirections));
  }
  void collide_row(std::int64_t y, std::int64_t z);

  Box box_;
  std::unique_ptr<double[]> now_;
  std::unique_ptr<double[]> next_;
};

// The equilibrium populations of a cell with this density and velocity.
void equilibrium(double density, double ux, double uy, double uz, double* populations);

}  // namespace farheap::bench
