// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernel.hpp"

#include <cmath>
#include <numbers>

#include "common/program.hpp"

namespace farheap::bench {

const std::array<Velocity, kDirections> kVelocities{{
    {0, 0, 0, 1.0 / 3},   {1, 0, 0, 1.0 / 18},   {-1, 0, 0, 1.0 / 18},  {0, 1, 0, 1.0 / 18},   {0, -1, 0, 1.0 / 18},
    {0, 0, 1, 1.0 / 18},  {0, 0, -1, 1.0 / 18},  {1, 1, 0, 1.0 / 36},   {-1, -1, 0, 1.0 / 36}, {1, -1, 0, 1.0 / 36},
    {-1, 1, 0, 1.0 / 36}, {1, 0, 1, 1.0 / 36},   {-1, 0, -1, 1.0 / 36}, {1, 0, -1, 1.0 / 36},  {-1, 0, 1, 1.0 / 36},
    {0, 1, 1, 1.0 / 36},  {0, -1, -1, 1.0 / 36}, {0, 1, -1, 1.0 / 36},  {0, -1, 1, 1.0 / 36},
}};

void equilibrium(double density, double ux, double uy, double uz, double* populations) {
  const double square = 1.5 * (ux * ux + uy * uy + uz * uz);
  for (int q = 0; q < kDirections; ++q) {
    const Velocity& v = kVelocities[q];
    const double along = 3.0 * (v.x * ux + v.y * uy + v.z * uz);
    populations[q] = v.weight * density * (1.0 + along + 0.5 * along * along - square);
  }
}

Lattice::Lattice(const Box& box, std::uint64_t seed)
    : box_(box),
      now_(new double[static_cast<std::size_t>(box.cells()) * kDirections]),
      next_(new double[static_cast<std::size_t>(box.cells()) * kDirections]) {
  double* cell = now_.get();
  std::uint64_t index = 0;
  for (std::int64_t z = 0; z < box.nz; ++z) {
    const double ux = 0.05 * std::sin(2 * std::numbers::pi * static_cast<double>(z) / static_cast<double>(box.nz));
    for (std::int64_t i = 0; i < box.nx * box.ny; ++i, ++index, cell += kDirections) {
      const double disturbance = static_cast<double>(random_at(seed, index) >> 11) * 0x1p-53 - 0.5;
      equilibrium(1.0 + 0.01 * disturbance, ux, 0.0, 0.0, cell);
    }
  }
}

namespace {
std::int64_t wrap(std::int64_t at, std::int64_t edge) { return at < 0 ? at + edge : at >= edge ? at - edge : at; }
}  // namespace

void Lattice::collide_row(std::int64_t y, std::int64_t z) {
  std::array<const double*, kDirections> row;  // where each direction streams from, at x = 0 before its x-offset
  for (int q = 0; q < kDirections; ++q) {
    const Velocity& v = kVelocities[q];
    row[q] = now_.get() + (wrap(z - v.z, box_.nz) * box_.ny + wrap(y - v.y, box_.ny)) * box_.nx * kDirections + q;
  }
  double* out = next_.get() + (z * box_.ny + y) * box_.nx * kDirections;
  for (std::int64_t x = 0; x < box_.nx; ++x, out += kDirections) {
    const std::int64_t left = (x == 0 ? box_.nx - 1 : x - 1) * kDirections;
    const std::int64_t right = (x == box_.nx - 1 ? 0 : x + 1) * kDirections;
    const std::int64_t source[3] = {right, x * kDirections, left};
    double in[kDirections];
    double density = 0, ux = 0, uy = 0, uz = 0;
    for (int q = 0; q < kDirections; ++q) {
      const Velocity& v = kVelocities[q];
      in[q] = row[q][source[v.x + 1]];
      density += in[q];
      ux += v.x * in[q];
      uy += v.y * in[q];
      uz += v.z * in[q];
    }
    double target[kDirections];
    equilibrium(density, ux / density, uy / density, uz / density, target);
    for (int q = 0; q < kDirections; ++q) out[q] = in[q] + kRelaxation * (target[q] - in[q]);
  }
}

void Lattice::step() {
  for (std::int64_t z = 0; z < box_.nz; ++z) {
    for (std::int64_t y = 0; y < box_.ny; ++y) collide_row(y, z);
  }
  now_.swap(next_);
}

}  // namespace farheap::bench
