// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "common/program.hpp"

#include "graph.hpp"
#include "kernel.hpp"
#include "verify.hpp"

namespace farheap::bench {
namespace {

constexpr std::uint64_t kEdgesPerVertex = 2;

unsigned scale_for(std::uint64_t bytes) {
  unsigned scale = 8;
  while ((2 * sizeof(Ranks) << (scale + 1)) <= bytes) ++scale;
  return scale;
}

class PageRankWork final : public Workload {
 public:
  explicit PageRankWork(const Flags& flags)
      : flags_(flags),
        graph_(scale_for(flags.size), kEdgesPerVertex << scale_for(flags.size), flags.seed),
        rank_(graph_) {}

  void run_kernel() override {
    for (std::uint64_t iteration = 0; iteration < flags_.steps; ++iteration) rank_.iterate(flags_.threads);
  }
  std::string verify() override { return verify_ranks(graph_, rank_.ranks(), rank_.spare(), flags_.steps); }
  std::uint64_t bytes() const override { return graph_.bytes() + 2 * sizeof(Ranks) * graph_.vertices(); }
  std::uint64_t steps() const override { return flags_.steps; }
  std::vector<ByteRange> result() override { return {std::as_writable_bytes(rank_.ranks())}; }

  // Small and used for every edge; then what is read at random, then what is written in order.
  std::vector<ByteRange> hottest() override {
    std::vector<ByteRange> ranges = graph_.memory();
    ranges.push_back(std::as_writable_bytes(rank_.ranks()));
    ranges.push_back(std::as_writable_bytes(rank_.spare()));
    return ranges;
  }

 private:
  Flags flags_;
  Graph graph_;
  PageRank rank_;
};

}  // namespace

Program this_program() {
  const std::vector<std::string> quick{"--size", "64M", "--steps", "1"};
  Program program;
  program.name = "pagerank";
  program.summary = "PageRank for 64 topics on an R-MAT graph; --steps is the number of iterations";
  program.kind = Kind::kRandom;
  program.random_trace = true;
  program.defaults.size = std::uint64_t{256} << 20;
  program.defaults.steps = 3;
  program.tiny_size = std::uint64_t{1} << 20;
  program.tiny_steps = 3;
  program.cases = {{"pagerank_1", {"--threads", "1"}, quick}, {"pagerank_2", {"--threads", "2"}, quick}};
  program.prepare = [](const Flags& flags) -> Workload* { return new PageRankWork(flags); };
  return program;
}

}  // namespace farheap::bench
