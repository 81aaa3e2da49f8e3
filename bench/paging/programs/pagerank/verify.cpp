// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "verify.hpp"

#include <fmt/format.h>

#include <cmath>

namespace farheap::bench {
namespace {

// Sums are taken in another order than the kernel's.
bool close(double found, double expected) { return std::abs(found - expected) <= 1e-12 * std::abs(expected); }

// Arrays of one topic, and the edges and degrees of all, within the memory that is lent.
struct Scratch {
  Scratch(const Graph& graph, std::span<Ranks> lent)
      : now(lent[0].data(), graph.vertices()),
        next(now.data() + graph.vertices(), graph.vertices()),
        degrees(reinterpret_cast<std::uint32_t*>(next.data() + graph.vertices()), graph.vertices()),
        edges(reinterpret_cast<Edge*>(degrees.data() + graph.vertices()), graph.edges()) {}

  std::span<double> now;
  std::span<double> next;
  std::span<std::uint32_t> degrees;
  std::span<Edge> edges;
};

void push(Scratch& scratch, std::uint32_t topic) {
  const auto vertices = static_cast<std::uint32_t>(scratch.now.size());
  double dangling = 0;
  for (std::uint32_t vertex = 0; vertex < vertices; ++vertex) {
    if (scratch.degrees[vertex] == 0) dangling += scratch.now[vertex];
  }
  for (std::uint32_t vertex = 0; vertex < vertices; ++vertex) {
    scratch.next[vertex] = (1 - kDamping + kDamping * dangling) * jump_share(vertices, vertex, topic);
  }
  for (const Edge& edge : scratch.edges) {
    scratch.next[edge.to] += kDamping * scratch.now[edge.from] / scratch.degrees[edge.from];
  }
  std::swap(scratch.now, scratch.next);
}

}  // namespace

std::string verify_ranks(const Graph& graph, std::span<const Ranks> ranks, std::span<Ranks> lent,
                         std::uint64_t iterations) {
  const std::uint32_t vertices = graph.vertices();
  Scratch scratch(graph, lent);
  for (std::uint32_t& degree : scratch.degrees) degree = 0;
  for (std::uint64_t number = 0; number < graph.edges(); ++number) {
    scratch.edges[number] = graph.edge(number);
    ++scratch.degrees[scratch.edges[number].from];
  }
  for (std::uint32_t topic = 0; topic < kTopics; ++topic) {
    for (std::uint32_t vertex = 0; vertex < vertices; ++vertex)
      scratch.now[vertex] = jump_share(vertices, vertex, topic);
    for (std::uint64_t iteration = 0; iteration < iterations; ++iteration) push(scratch, topic);
    double sum = 0;
    for (std::uint32_t vertex = 0; vertex < vertices; ++vertex) {
      sum += ranks[vertex][topic];
      if (close(ranks[vertex][topic], scratch.now[vertex])) continue;
      return fmt::format("vertex {} has rank {} in topic {}, not {}", vertex, ranks[vertex][topic], topic,
                         scratch.now[vertex]);
    }
    if (!(std::abs(sum - 1) < 1e-9)) return fmt::format("the ranks of topic {} are {} together, not 1", topic, sum);
  }
  return "";
}

}  // namespace farheap::bench
