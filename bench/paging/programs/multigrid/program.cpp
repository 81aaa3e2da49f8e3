// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "common/program.hpp"

#include "kernel.hpp"
#include "verify.hpp"

namespace farheap::bench {
namespace {

constexpr std::int64_t kGranule = 32;  // cells are a multiple of it where the size allows: five halvings

std::int64_t cells_for(std::uint64_t bytes) {
  const std::int64_t granule = Multigrid::bytes_for(2 * kGranule) <= bytes ? kGranule : 8;
  std::int64_t cells = granule;
  while (Multigrid::bytes_for(cells + granule) <= bytes) cells += granule;
  return cells;
}

class MultigridWork final : public Workload {
 public:
  explicit MultigridWork(const Flags& flags) : flags_(flags), multigrid_(cells_for(flags.size), flags.seed) {}

  void run_kernel() override {
    for (std::uint64_t cycle = 0; cycle < flags_.steps; ++cycle) multigrid_.cycle();
  }
  std::string verify() override { return verify_answer(finest(), flags_.seed, flags_.steps); }
  std::uint64_t bytes() const override { return Multigrid::bytes_for(cells_for(flags_.size)); }
  std::uint64_t steps() const override { return flags_.steps; }
  std::vector<ByteRange> result() override { return {std::as_writable_bytes(finest().u())}; }

  // A coarse grid is used as often as the finest, but in a shorter time: the coarsest first.
  std::vector<ByteRange> hottest() override {
    std::vector<ByteRange> ranges;
    for (auto grid = multigrid_.grids().rbegin(); grid != multigrid_.grids().rend(); ++grid) {
      ranges.push_back(std::as_writable_bytes(grid->u()));
      ranges.push_back(std::as_writable_bytes(grid->f()));
    }
    return ranges;
  }

 private:
  Grid& finest() { return multigrid_.grids().front(); }

  Flags flags_;
  Multigrid multigrid_;
};

}  // namespace

Program this_program() {
  Program program;
  program.name = "multigrid";
  program.summary = "V-cycles for the Poisson equation on a cube; --steps is their number";
  program.kind = Kind::kSweeping;
  program.defaults.size = std::uint64_t{230} << 20;
  program.defaults.steps = 5;
  program.tiny_size = std::uint64_t{1} << 20;
  program.tiny_steps = 3;
  program.cases = {{"multigrid", {}, {"--size", "96M", "--steps", "3"}}};
  program.prepare = [](const Flags& flags) -> Workload* { return new MultigridWork(flags); };
  return program;
}

}  // namespace farheap::bench
