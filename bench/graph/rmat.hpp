// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Edges as R-MAT draws them (Chakrabarti, Zhan, Faloutsos, 2004; the parameters of Graph500): of 2^scale vertices, 16
// edges for each, few vertices with very many. The vertices' numbers are scrambled, so that neighbours in number are
// none in degree.
#pragma once

#include <cstdint>
#include <random>
#include <utility>

#include "adjacency_list.hpp"

namespace farheap::bench {

constexpr std::uint32_t share_of_all(double share) { return static_cast<std::uint32_t>(share * 4294967296.0); }

class Rmat {
 public:
  static constexpr unsigned kEdgesPerVertex = 16;
  Rmat(unsigned scale, std::uint64_t seed) : scale_(scale), random_(seed) {}

  std::pair<std::uint32_t, std::uint32_t> next() {
    constexpr std::uint32_t kA = share_of_all(0.57), kB = share_of_all(0.76), kC = share_of_all(0.95);
    std::uint32_t from = 0, to = 0;
    for (unsigned bit = 0; bit < scale_; ++bit) {
      const auto drawn = static_cast<std::uint32_t>(random_());
      from = 2 * from + (drawn >= kB);
      to = 2 * to + ((drawn >= kA && drawn < kB) || drawn >= kC);
    }
    return {scrambled(from), scrambled(to)};
  }

 private:
  // A permutation of the vertices: multiplication by odd numbers and shifts down are.
  [[nodiscard]] std::uint32_t scrambled(std::uint32_t vertex) const {
    const std::uint32_t mask = static_cast<std::uint32_t>((std::uint64_t{1} << scale_) - 1);
    vertex = (vertex * 0x9e3779b1u) & mask;
    vertex ^= vertex >> (scale_ / 2);
    return (vertex * 0x85ebca6bu) & mask;
  }

  unsigned scale_;
  std::mt19937_64 random_;
};

}  // namespace farheap::bench
