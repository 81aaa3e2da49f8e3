// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "waves.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "common/program.hpp"

namespace farheap::bench {
namespace {

constexpr std::uint64_t kWaves = 3;
constexpr std::int64_t kHighest = 7;  // frequency: of higher ones the damping would leave nothing to see

}  // namespace

PlaneWaves::PlaneWaves(const Shape& shape, std::uint64_t seed, std::uint64_t steps) : waves_(kWaves) {
  std::uint64_t drawn = 0;
  for (auto& wave : waves_) {
    std::array<std::int64_t, 3> frequency{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::int64_t most = std::min(kHighest, shape.edges[axis] / 2 - 1);
      frequency[axis] = static_cast<std::int64_t>(scale_random(random_at(seed, drawn++), 2 * most + 1)) - most;
    }
    const double start = 0.5 + static_cast<double>(random_at(seed, drawn++) >> 11) * 0x1p-53;
    const double left = std::pow(damping(frequency[0], frequency[1], frequency[2]), static_cast<double>(steps));
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double amplitude = axis == 2 ? start * left : 1.0;
      const double turn = 2 * std::numbers::pi * static_cast<double>(frequency[axis]) / shape.edges[axis];
      for (std::int64_t i = 0; i < shape.edges[axis]; ++i) {
        const double angle = turn * static_cast<double>(i);
        wave[axis].push_back({amplitude * std::cos(angle), amplitude * std::sin(angle)});
      }
    }
  }
}

Complex PlaneWaves::at(std::int64_t x, std::int64_t y, std::int64_t z) const {
  Complex sum;
  for (const auto& wave : waves_) sum = sum + wave[0][x] * (wave[1][y] * wave[2][z]);
  return sum;
}

}  // namespace farheap::bench
