// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "verify.hpp"

#include <fmt/format.h>

#include <cmath>

#include "waves.hpp"

namespace farheap::bench {
namespace {
constexpr double kRounding = 1e-12;  // amplitudes are of the order of 1; an error of the transform grows as log(points)
}  // namespace

std::string verify_waves(HeatBox& box, std::uint64_t seed, std::uint64_t steps) {
  const auto [nx, ny, nz] = box.shape().edges;
  const PlaneWaves waves(box.shape(), seed, steps);
  const Complex* point = box.data().data();
  for (std::int64_t z = 0; z < nz; ++z) {
    for (std::int64_t y = 0; y < ny; ++y) {
      for (std::int64_t x = 0; x < nx; ++x, ++point) {
        const Complex error = *point - waves.at(x, y, z);
        if (std::abs(error.re) < kRounding && std::abs(error.im) < kRounding) continue;
        return fmt::format("point ({}, {}, {}) is off by {} + {}i", x, y, z, error.re, error.im);
      }
    }
  }
  return "";
}

}  // namespace farheap::bench
