// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "waves.hpp"

#include <cmath>
#include <numbers>

#include "common/program.hpp"

namespace farheap::bench {
namespace {
constexpr int kWaves = 3;
constexpr int kMostHalfWaves = 6;
}  // namespace

std::vector<Wave> waves_of(std::uint64_t seed) {
  std::vector<Wave> waves(kWaves);
  std::uint64_t drawn = 0;
  for (Wave& wave : waves) {
    wave.amplitude = 0.5 + static_cast<double>(random_at(seed, drawn++) >> 11) * 0x1p-53;
    for (int& number : wave.numbers) number = 1 + static_cast<int>(random_at(seed, drawn++) % kMostHalfWaves);
  }
  return waves;
}

double eigenvalue(const Wave& wave, std::int64_t cells) {
  double sum = 0;
  for (const int number : wave.numbers) {
    const double sine = std::sin(number * std::numbers::pi / (2.0 * static_cast<double>(cells)));
    sum += 4 * sine * sine;
  }
  return sum * static_cast<double>(cells) * static_cast<double>(cells);
}

WaveTable::WaveTable(const std::vector<Wave>& waves, std::int64_t cells, double (*scale)(const Wave&, std::int64_t))
    : edge_(cells + 1) {
  for (const Wave& wave : waves) {
    amplitudes_.push_back(wave.amplitude * scale(wave, cells));
    for (const int number : wave.numbers) {
      for (std::int64_t point = 0; point <= cells; ++point) {
        const bool face = point == 0 || point == cells;
        const double angle = number * std::numbers::pi * static_cast<double>(point) / static_cast<double>(cells);
        sines_.push_back(face ? 0.0 : std::sin(angle));
      }
    }
  }
}

double WaveTable::at(std::int64_t x, std::int64_t y, std::int64_t z) const {
  double sum = 0;
  const double* sines = sines_.data();
  for (const double amplitude : amplitudes_) {
    sum += amplitude * sines[x] * sines[edge_ + y] * sines[2 * edge_ + z];
    sines += 3 * edge_;
  }
  return sum;
}

}  // namespace farheap::bench
