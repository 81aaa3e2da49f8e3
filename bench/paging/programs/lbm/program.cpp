// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>

#include "common/program.hpp"
#include "kernel.hpp"
#include "verify.hpp"

namespace farheap::bench {
namespace {

constexpr std::int64_t kPlaneEdge = 100;  // planes of 100 x 100 cells; the size decides how many

Box box_for(std::uint64_t bytes) {
  const std::uint64_t plane_bytes = 2 * Box{kPlaneEdge, kPlaneEdge, 1}.grid_bytes();
  return {kPlaneEdge, kPlaneEdge, std::max<std::int64_t>(3, static_cast<std::int64_t>(bytes / plane_bytes))};
}

class Lbm final : public Workload {
 public:
  explicit Lbm(const Flags& flags)
      : steps_(flags.steps), lattice_(box_for(flags.size), flags.seed), before_(measure(lattice_)) {}

  void run_kernel() override {
    for (std::uint64_t step = 0; step < steps_; ++step) lattice_.step();
  }
  std::string verify() override { return compare(before_, measure(lattice_), lattice_.box(), steps_); }
  std::uint64_t bytes() const override { return 2 * lattice_.box().grid_bytes(); }
  std::uint64_t steps() const override { return steps_; }
  std::vector<ByteRange> result() override { return {lattice_.older_grid()}; }
  std::vector<ByteRange> hottest() override { return {lattice_.older_grid(), lattice_.newer_grid()}; }

 private:
  std::uint64_t steps_;
  Lattice lattice_;
  Invariants before_;
};

}  // namespace

Program this_program() {
  Program program;
  program.name = "lbm";
  program.summary = "lattice Boltzmann D3Q19, two grids; --steps is the number of time steps";
  program.kind = Kind::kSweeping;
  program.defaults.size = std::uint64_t{247} << 20;
  program.defaults.steps = 10;
  program.tiny_size = std::uint64_t{16} << 20;
  program.tiny_steps = 3;
  program.cases = {{"lbm", {}, {"--size", "96M", "--steps", "4"}}};
  program.prepare = [](const Flags& flags) -> Workload* { return new Lbm(flags); };
  return program;
}

}  // namespace farheap::bench
