// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "common/program.hpp"

#include <algorithm>

#include "kernel.hpp"
#include "verify.hpp"

namespace farheap::bench {
namespace {

std::uint64_t bytes_for(const Cube& cube) {
  const std::uint64_t entry = sizeof(double) + sizeof(std::int32_t);
  return cube.entries() * entry + cube.rows() * (4 * sizeof(double) + sizeof(std::int64_t));
}

Cube cube_for(std::uint64_t bytes) {
  Cube cube{3};
  while (bytes_for({cube.edge + 1}) <= bytes) ++cube.edge;
  return cube;
}

class CgWork final : public Workload {
 public:
  explicit CgWork(const Flags& flags) : flags_(flags), solver_(cube_for(flags.size), flags.seed) {}

  void run_kernel() override {
    for (std::uint64_t iteration = 0; iteration < flags_.steps; ++iteration) solver_.iterate();
  }
  std::string verify() override {
    return verify_solution(solver_.cube(), solver_.x(), solver_.residual(), flags_.seed, flags_.steps);
  }
  std::uint64_t bytes() const override { return bytes_for(solver_.cube()); }
  std::uint64_t steps() const override { return flags_.steps; }
  std::vector<ByteRange> result() override {
    return {std::as_writable_bytes(solver_.x()), std::as_writable_bytes(solver_.residual())};
  }
  // The vectors are used two to four times an iteration, the matrix once.
  std::vector<ByteRange> hottest() override {
    return {std::as_writable_bytes(solver_.direction()), std::as_writable_bytes(solver_.residual()),
            std::as_writable_bytes(solver_.product()),   std::as_writable_bytes(solver_.x()),
            std::as_writable_bytes(solver_.values()),    std::as_writable_bytes(solver_.columns())};
  }

 private:
  Flags flags_;
  ConjugateGradient solver_;
};

}  // namespace

Program this_program() {
  Program program;
  program.name = "cg";
  program.summary = "conjugate gradients, a 27-point stencil in CSR form; --steps is the number of iterations";
  program.kind = Kind::kSweeping;
  program.defaults.size = std::uint64_t{240} << 20;
  program.defaults.steps = 20;
  program.tiny_size = std::uint64_t{1} << 20;
  program.tiny_steps = 8;
  program.cases = {{"cg", {}, {"--size", "96M", "--steps", "8"}}};
  program.prepare = [](const Flags& flags) -> Workload* { return new CgWork(flags); };
  return program;
}

}  // namespace farheap::bench
