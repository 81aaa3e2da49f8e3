// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernel.hpp"

#include <atomic>

#include "common/threads.hpp"

namespace farheap::bench {
namespace {

// Vertices are dealt out in parts, and sums are taken by part: so they do not depend on the number of threads.
constexpr std::uint32_t kParts = 64;

}  // namespace

PageRank::PageRank(const Graph& graph)
    : graph_(graph),
      now_(new Ranks[graph.vertices()]),
      next_(new Ranks[graph.vertices()]()),
      part_dangling_(new Ranks[kParts]()) {
  for (std::uint32_t vertex = 0; vertex < graph.vertices(); ++vertex) {
    for (std::uint32_t topic = 0; topic < kTopics; ++topic) {
      now_[vertex][topic] = jump_share(graph.vertices(), vertex, topic);
    }
    if (graph.out_degree(vertex) == 0) {
      for (std::uint32_t topic = 0; topic < kTopics; ++topic) dangling_[topic] += now_[vertex][topic];
    }
  }
}

void PageRank::pull(std::uint32_t part) {
  const std::uint64_t vertices = graph_.vertices();
  Ranks& dangling = part_dangling_[part];
  dangling.fill(0);
  for (std::uint64_t at = vertices * part / kParts; at < vertices * (part + 1) / kParts; ++at) {
    const auto vertex = static_cast<std::uint32_t>(at);
    Ranks sum{};
    for (const std::uint32_t from : graph_.into(vertex)) {
      const double share = kDamping / graph_.out_degree(from);
      for (std::uint32_t topic = 0; topic < kTopics; ++topic) sum[topic] += share * now_[from][topic];
    }
    const std::uint32_t own = vertex % kTopics;  // the only topic whose jumps lead here
    sum[own] += (1 - kDamping + kDamping * dangling_[own]) * jump_share(graph_.vertices(), vertex, own);
    next_[vertex] = sum;
    if (graph_.out_degree(vertex) > 0) continue;
    for (std::uint32_t topic = 0; topic < kTopics; ++topic) dangling[topic] += sum[topic];
  }
}

void PageRank::iterate(unsigned threads) {
  std::atomic<std::uint32_t> next_part{0};
  in_threads(threads, [&](unsigned) {
    for (std::uint32_t part = next_part++; part < kParts; part = next_part++) pull(part);
  });
  dangling_.fill(0);
  for (std::uint32_t part = 0; part < kParts; ++part) {
    for (std::uint32_t topic = 0; topic < kTopics; ++topic) dangling_[topic] += part_dangling_[part][topic];
  }
  now_.swap(next_);
}

}  // namespace farheap::bench
