// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums of a few plane waves: what a heat box starts from, and what must be left of it.
//
// Thread-safety: values.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernel.hpp"

namespace farheap::bench {

// The waves of a seed after `steps` of damping, each a product of one factor for every coordinate.
class PlaneWaves {
 public:
  PlaneWaves(const Shape& shape, std::uint64_t seed, std::uint64_t steps);
  [[nodiscard]] Complex at(std::int64_t x, std::int64_t y, std::int64_t z) const;

 private:
  std::vector<std::array<std::vector<Complex>, 3>> waves_;  // the amplitude is in the factor of z
};

}  // namespace farheap::bench
