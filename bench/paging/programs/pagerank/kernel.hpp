// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Topic-sensitive PageRank (Haveliwala 2002): a vertex has a rank for each of 64 topics, which differ in where a
// surfer jumps to; 512 bytes, so that ranks are nearly all of the data and an edge is a read at a random place of
// them. An iteration pulls: it sweeps the graph (2 % of the data) and writes the new ranks in order (half of the
// rest), and for every edge reads a record of the old ranks, where there is no order but the popularity that R-MAT
// gives. With one rank a vertex, ranks would be a few megabytes that every edge keeps in memory, and the edges a sweep.
//
// Thread-safety: iterate() uses threads of its own; otherwise one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "graph.hpp"

namespace farheap::bench {

inline constexpr std::uint32_t kTopics = 64;
inline constexpr double kDamping = 0.85;
using Ranks = std::array<double, kTopics>;

// The share of a topic's jumps that lead to this vertex: topics divide the vertices among them.
[[nodiscard]] inline double jump_share(std::uint32_t vertices, std::uint32_t vertex, std::uint32_t topic) {
  return vertex % kTopics == topic ? static_cast<double>(kTopics) / vertices : 0.0;
}

class PageRank {
 public:
  // Starts with what the jumps alone would give. Requires: the graph outlives this; at least kTopics vertices.
  explicit PageRank(const Graph& graph);

  void iterate(unsigned threads);  // the result does not depend on how many
  [[nodiscard]] std::span<Ranks> ranks() { return {now_.get(), graph_.vertices()}; }
  [[nodiscard]] std::span<Ranks> spare() { return {next_.get(), graph_.vertices()}; }

 private:
  void pull(std::uint32_t part);

  const Graph& graph_;
  std::unique_ptr<Ranks[]> now_;
  std::unique_ptr<Ranks[]> next_;
  Ranks dangling_{};  // of all vertices without outgoing edges: their surfers jump
  std::unique_ptr<Ranks[]> part_dangling_;
};

}  // namespace farheap::bench
