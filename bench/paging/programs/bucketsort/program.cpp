// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "common/program.hpp"
#include "kernel.hpp"
#include "verify.hpp"

namespace farheap::bench {
namespace {

class BucketSortWork final : public Workload {
 public:
  explicit BucketSortWork(const Flags& flags)
      : flags_(flags), sort_(flags.size / 2 / sizeof(std::uint64_t), flags.seed) {}

  void run_kernel() override {
    for (std::uint64_t round = 0; round < flags_.steps; ++round) sort_.round();
  }
  std::string verify() override { return verify_sorted(sort_.keys(), flags_.seed, flags_.steps); }
  std::uint64_t bytes() const override { return flags_.size; }
  std::uint64_t steps() const override { return flags_.steps; }
  std::vector<ByteRange> result() override { return {std::as_writable_bytes(sort_.keys())}; }
  // The array with the many places that are written to at a time, then the one that is read in order.
  std::vector<ByteRange> hottest() override {
    return {std::as_writable_bytes(sort_.spare()), std::as_writable_bytes(sort_.keys())};
  }

 private:
  Flags flags_;
  BucketSort sort_;
};

}  // namespace

Program this_program() {
  Program program;
  program.name = "bucketsort";
  program.summary = "bucket sort of 64-bit keys between two arrays; --steps is the number of sorts";
  program.kind = Kind::kSweeping;
  program.defaults.size = std::uint64_t{240} << 20;
  program.defaults.steps = 2;
  program.tiny_size = std::uint64_t{1} << 20;
  program.tiny_steps = 2;
  program.cases = {{"bucketsort", {}, {"--size", "96M", "--steps", "2"}}};
  program.prepare = [](const Flags& flags) -> Workload* { return new BucketSortWork(flags); };
  return program;
}

}  // namespace farheap::bench
