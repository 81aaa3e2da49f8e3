// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The right-hand side and its exact answer: products of three sines are eigenvectors of the Laplacian, of the discrete
// one as well, so that the answer on a grid is known without solving anything.
//
// Thread-safety: values.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace farheap::bench {

struct Wave {
  double amplitude;            // of the answer
  std::array<int, 3> numbers;  // half waves along x, y and z
};

[[nodiscard]] std::vector<Wave> waves_of(std::uint64_t seed);

// The eigenvalue of the seven-point Laplacian on a grid of `cells` an edge.
[[nodiscard]] double eigenvalue(const Wave& wave, std::int64_t cells);

// Sums of waves on the points of a grid. `scale` is applied to each wave's amplitude.
class WaveTable {
 public:
  WaveTable(const std::vector<Wave>& waves, std::int64_t cells, double (*scale)(const Wave&, std::int64_t));
  // The sum of all waves at (x, y, z), which is 0 on the faces.
  [[nodiscard]] double at(std::int64_t x, std::int64_t y, std::int64_t z) const;

 private:
  std::int64_t edge_;
  std::vector<double> amplitudes_;
  std::vector<double> sines_;  // [wave][axis][point]
};

}  // namespace farheap::bench
