// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "common/program.hpp"

#include "kernel.hpp"
#include "verify.hpp"
#include "waves.hpp"

namespace farheap::bench {
namespace {

// Doubles z, y and x in turns, as long as the box fits.
Shape shape_for(std::uint64_t bytes) {
  Shape shape{{16, 16, 16}};
  for (std::size_t axis = 2;; axis = (axis + 2) % 3) {
    Shape larger = shape;
    larger.edges[axis] *= 2;
    if (static_cast<std::uint64_t>(larger.points()) * sizeof(Complex) > bytes) return shape;
    shape = larger;
  }
}

class FftWork final : public Workload {
 public:
  explicit FftWork(const Flags& flags) : flags_(flags), box_(shape_for(flags.size)) {
    const PlaneWaves waves(box_.shape(), flags.seed, 0);
    const auto [nx, ny, nz] = box_.shape().edges;
    Complex* point = box_.data().data();
    for (std::int64_t z = 0; z < nz; ++z) {
      for (std::int64_t y = 0; y < ny; ++y) {
        for (std::int64_t x = 0; x < nx; ++x) *point++ = waves.at(x, y, z);
      }
    }
  }

  void run_kernel() override {
    for (std::uint64_t step = 0; step < flags_.steps; ++step) box_.step();
  }
  std::string verify() override { return verify_waves(box_, flags_.seed, flags_.steps); }
  std::uint64_t bytes() const override { return static_cast<std::uint64_t>(box_.shape().points()) * sizeof(Complex); }
  std::uint64_t steps() const override { return flags_.steps; }
  std::vector<ByteRange> result() override { return {std::as_writable_bytes(box_.data())}; }
  std::vector<ByteRange> hottest() override { return result(); }  // every point is used as often as the next

 private:
  Flags flags_;
  HeatBox box_;
};

}  // namespace

Program this_program() {
  Program program;
  program.name = "fft3d";
  program.summary = "the heat equation by 3-D Fourier transforms in place; --steps is the number of time steps";
  program.kind = Kind::kSweeping;
  program.defaults.size = std::uint64_t{256} << 20;
  program.defaults.steps = 1;
  program.tiny_size = std::uint64_t{512} << 10;
  program.tiny_steps = 2;
  program.cases = {{"fft3d", {}, {"--size", "64M", "--steps", "1"}}};
  program.prepare = [](const Flags& flags) -> Workload* { return new FftWork(flags); };
  return program;
}

}  // namespace farheap::bench
