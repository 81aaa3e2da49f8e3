// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "graph.hpp"

#include "common/program.hpp"

namespace farheap::bench {
namespace {

// In 65536ths: a quadrant is drawn with 16 random bits.
constexpr std::uint64_t kBothLow = 37356;             // 0.57
constexpr std::uint64_t kToHigh = kBothLow + 12452;   // 0.19
constexpr std::uint64_t kFromHigh = kToHigh + 12452;  // 0.19

// A bijection of the numbers below 2^scale.
std::uint32_t renumbered(std::uint32_t vertex, unsigned scale, std::uint64_t seed) {
  const std::uint32_t mask = (std::uint32_t{1} << scale) - 1;
  for (std::uint64_t round = 0; round < 3; ++round) {
    const std::uint64_t random = random_at(seed, round);
    vertex = (vertex * (static_cast<std::uint32_t>(random) | 1) + static_cast<std::uint32_t>(random >> 32)) & mask;
    vertex ^= vertex >> (scale / 2 + 1);
  }
  return vertex;
}

}  // namespace

Edge Graph::edge(std::uint64_t number) const {
  Edge edge{0, 0};
  std::uint64_t random = 0;
  for (unsigned level = 0; level < scale_; ++level) {
    random = level % 4 == 0 ? random_at(seed_, number * 8 + level / 4) : random >> 16;
    const std::uint64_t quadrant = random & 0xffff;
    edge.from = edge.from * 2 + (quadrant >= kToHigh ? 1 : 0);
    edge.to = edge.to * 2 + ((quadrant >= kBothLow && quadrant < kToHigh) || quadrant >= kFromHigh ? 1 : 0);
  }
  return {renumbered(edge.from, scale_, ~seed_), renumbered(edge.to, scale_, ~seed_)};
}

Graph::Graph(unsigned scale, std::uint64_t edges, std::uint64_t seed)
    : scale_(scale),
      edges_(edges),
      seed_(seed),
      start_(new std::uint32_t[std::size_t{vertices()} + 1]()),
      out_degree_(new std::uint32_t[vertices()]()),
      from_(new std::uint32_t[edges]) {
  for (std::uint64_t number = 0; number < edges; ++number) {
    const Edge one = edge(number);
    ++out_degree_[one.from];
    ++start_[one.to + 1];
  }
  for (std::uint32_t vertex = 0; vertex < vertices(); ++vertex) start_[vertex + 1] += start_[vertex];
  for (std::uint64_t number = 0; number < edges; ++number) {  // moves each start to the next one's place
    const Edge one = edge(number);
    from_[start_[one.to]++] = one.from;
  }
  for (std::uint32_t vertex = vertices(); vertex > 0; --vertex) start_[vertex] = start_[vertex - 1];
  start_[0] = 0;
}

std::vector<std::span<std::byte>> Graph::memory() {
  return {bytes_of(start_.get(), std::size_t{vertices()} + 1), bytes_of(out_degree_.get(), vertices()),
          bytes_of(from_.get(), edges_)};
}

}  // namespace farheap::bench
