// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks a lattice against theory: a periodic box neither gains nor loses mass or momentum, and the shear wave loses
// as much of its amplitude as linear theory says, to 0.2 % of the loss.
#pragma once

#include <cstdint>
#include <string>

#include "kernel.hpp"

namespace farheap::bench {

struct Invariants {
  double mass = 0;
  double momentum_x = 0;
  double wave = 0;  // amplitude of the shear wave
};
[[nodiscard]] Invariants measure(const Lattice& lattice);

// "" or what is wrong with `after`, `steps` steps later than `before`.
[[nodiscard]] std::string compare(const Invariants& before, const Invariants& after, const Box& box,
                                  std::uint64_t steps);

}  // namespace farheap::bench
