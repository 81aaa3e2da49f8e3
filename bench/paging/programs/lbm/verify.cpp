// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "verify.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <complex>
#include <numbers>

namespace farheap::bench {

Invariants measure(const Lattice& lattice) {
  const Box& box = lattice.box();
  const double* cell = lattice.populations();
  Invariants found;
  for (std::int64_t z = 0; z < box.nz; ++z) {
    double plane_mass = 0, plane_momentum = 0;
    for (std::int64_t i = 0; i < box.nx * box.ny; ++i, cell += kDirections) {
      for (int q = 0; q < kDirections; ++q) {
        plane_mass += cell[q];
        plane_momentum += kVelocities[q].x * cell[q];
      }
    }
    found.mass += plane_mass;
    found.momentum_x += plane_momentum;
    found.wave += 2 * plane_momentum / static_cast<double>(box.cells()) *
                  std::sin(2 * std::numbers::pi * static_cast<double>(z) / static_cast<double>(box.nz));
  }
  return found;
}

namespace {

// What is left of a shear wave of amplitude 1: its 19 populations in Fourier space, where streaming is a phase each.
// The collision is linear for it but for terms of the square of the velocity. Close to exp(-viscosity k^2 t), but
// for the steps in which the stress builds up, which a box that starts in equilibrium has to do first.
double wave_after(double number, std::uint64_t steps) {
  std::array<std::complex<double>, kDirections> wave;
  std::complex<double> momentum = 1;
  for (int q = 0; q < kDirections; ++q) wave[q] = 3 * kVelocities[q].weight * kVelocities[q].x;
  for (std::uint64_t step = 0; step < steps; ++step) {
    momentum = 0;
    for (int q = 0; q < kDirections; ++q) {
      wave[q] *= std::polar(1.0, -number * kVelocities[q].z);
      momentum += static_cast<double>(kVelocities[q].x) * wave[q];
    }
    for (int q = 0; q < kDirections; ++q) {
      wave[q] += kRelaxation * (3 * kVelocities[q].weight * kVelocities[q].x * momentum - wave[q]);
    }
  }
  return momentum.real();
}

}  // namespace

std::string compare(const Invariants& before, const Invariants& after, const Box& box, std::uint64_t steps) {
  const double mass_error = std::abs(after.mass - before.mass) / before.mass;
  if (!(mass_error < 1e-10)) return fmt::format("mass changed by a factor of {}", mass_error);
  const double momentum_error = std::abs(after.momentum_x - before.momentum_x) / before.mass;
  if (!(momentum_error < 1e-10)) return fmt::format("momentum changed by {} a cell", momentum_error);
  const double decay = 1 - wave_after(2 * std::numbers::pi / static_cast<double>(box.nz), steps);
  const double found = 1 - after.wave / before.wave;
  if (!(std::abs(found - decay) <= 0.002 * std::abs(decay))) {
    return fmt::format("the shear wave lost {} of its amplitude, theory says {}", found, decay);
  }
  return "";
}

}  // namespace farheap::bench
