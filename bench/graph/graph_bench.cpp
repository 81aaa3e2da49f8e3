// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds a graph edge by edge with one allocator: the one that GRAPH_SUBJECT names, a header with a class Subject:
//
//   Subject(FOLDER, most bytes)    what it needs is there, in files of that folder if it has any
//   Allocator, allocator()         of std::byte
//   void finish(graph)             what makes the graph durable, if the subject can; then kKeeps is true
//   void report()                  what it wants to say beside the times, after finish()
//
//   graph_SUBJECT FOLDER SCALE THREADS [SEED]       a line `METRIC VALUE` for each figure
//
// The edges are drawn before the clock starts. Each is entered in both directions.
#include GRAPH_SUBJECT

#include <sys/mman.h>
#include <sys/resource.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "adjacency_list.hpp"
#include "common/threads.hpp"
#include "rmat.hpp"

namespace farheap::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Graph = AdjacencyList<Subject::Allocator>;

struct Edge {
  std::uint32_t from, to;
};

double seconds(Clock::time_point since) { return std::chrono::duration<double>(Clock::now() - since).count(); }

// Of all threads of the process: on a machine that others use, too, this tells more than the clock.
double processor_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

// Not from malloc, which may be what is measured.
std::span<Edge> draw(unsigned scale, std::uint64_t seed) {
  const std::size_t count = (std::size_t{1} << scale) * Rmat::kEdgesPerVertex;
  void* const memory =
      mmap(nullptr, count * sizeof(Edge), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) stop("no memory for the edges");
  const std::span<Edge> edges(static_cast<Edge*>(memory), count);
  Rmat rmat(scale, seed);
  for (Edge& edge : edges) {
    const auto [from, to] = rmat.next();
    edge = {from, to};
  }
  return edges;
}

void build(Graph& graph, std::span<const Edge> edges, unsigned threads) {
  auto locks = std::make_unique<Graph::Locks>();
  in_threads(threads, [&](unsigned thread) {
    const std::size_t first = edges.size() * thread / threads;
    const std::size_t end = edges.size() * (thread + 1) / threads;
    for (const Edge& edge : edges.subspan(first, end - first)) {
      graph.add(edge.from, edge.to, *locks);
      graph.add(edge.to, edge.from, *locks);
    }
  });
}

int run(const char* folder, unsigned scale, unsigned threads, std::uint64_t seed) {
  const std::span<const Edge> edges = draw(scale, seed);
  Subject subject(folder, edges.size() * 512);
  const double processor_before = processor_seconds();
  const auto since = Clock::now();
  Graph* const graph = subject.construct<Graph>();
  build(*graph, edges, threads);
  std::printf("seconds %.6f\n", seconds(since));
  std::printf("processor_seconds %.6f\n", processor_seconds() - processor_before);
  if constexpr (Subject::kKeeps) {
    subject.finish();
    std::printf("seconds_with_commit %.6f\n", seconds(since));
    std::printf("processor_seconds_with_commit %.6f\n", processor_seconds() - processor_before);
  }
  const Graph::Sum sum = graph->sum();
  if (sum.degrees != 2 * edges.size()) stop("edges are lost");
  std::printf("vertices %" PRIu64 "\nchecksum %" PRIu64 "\n", sum.vertices, sum.checksum >> 12);  // exact as a double
  subject.report();
  std::fflush(stdout);
  std::_Exit(0);  // nobody wants to wait until everything is freed
}

}  // namespace
}  // namespace farheap::bench

int main(int count, char** words) {
  if (count < 4 || count > 5) farheap::bench::stop("usage: graph_SUBJECT FOLDER SCALE THREADS [SEED]");
  const std::uint64_t seed = count > 4 ? std::strtoull(words[4], nullptr, 10) : 1;
  return farheap::bench::run(words[1], static_cast<unsigned>(std::atoi(words[2])),
                             static_cast<unsigned>(std::atoi(words[3])), seed);
}
