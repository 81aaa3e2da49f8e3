// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "verify.hpp"

#include <fmt/format.h>

#include <cmath>
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

std::string compare(const Invariants& before, const Invariants& after, const Box& box, double steps) {
  const double mass_error = std::abs(after.mass - before.mass) / before.mass;
  if (!(mass_error < 1e-10)) return fmt::format("mass changed by a factor of {}", mass_error);
  const double momentum_error = std::abs(after.momentum_x - before.momentum_x) / before.mass;
  if (!(momentum_error < 1e-10)) return fmt::format("momentum changed by {} a cell", momentum_error);
  const double viscosity = (1 / kRelaxation - 0.5) / 3;
  const double number = 2 * std::numbers::pi / static_cast<double>(box.nz);
  const double expected = before.wave * std::exp(-viscosity * number * number * steps);
  if (!(std::abs(after.wave - expected) < 0.02 * expected)) {
    return fmt::format("the shear wave has amplitude {}, theory says {}", after.wave, expected);
  }
  return "";
}

}  // namespace farheap::bench
