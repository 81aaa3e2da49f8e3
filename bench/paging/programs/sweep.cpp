// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// sweep: reads, changes and writes every word of a large array in order, again and again. The simplest program
// that kernel swap is bad at: with LRU and a budget below the array, every page misses in every sweep.
#include <memory>
#include <string>

#include "common/affine_step.hpp"
#include "common/program.hpp"

namespace farheap::bench {
namespace {

class Sweep final : public Workload {
 public:
  explicit Sweep(const Flags& flags)
      : words_(flags.size / sizeof(std::uint64_t)),
        sweeps_(flags.steps),
        seed_(flags.seed),
        data_(new std::uint64_t[words_]) {
    for (std::uint64_t i = 0; i < words_; ++i) data_[i] = random_at(seed_, i);
  }

  void run_kernel() override {
    for (std::uint64_t sweep = 0; sweep < sweeps_; ++sweep) {
      for (std::uint64_t i = 0; i < words_; ++i) data_[i] = AffineStep()(data_[i]);
    }
  }

  // Every word's value after `sweeps_` steps follows from its first one alone.
  std::string verify() override {
    const AffineStep all = AffineStep().repeated(sweeps_);
    for (std::uint64_t i = 0; i < words_; ++i) {
      if (data_[i] != all(random_at(seed_, i))) return "word " + std::to_string(i) + " is wrong";
    }
    return "";
  }

  std::uint64_t bytes() const override { return words_ * sizeof(std::uint64_t); }
  std::uint64_t steps() const override { return sweeps_; }
  std::vector<ByteRange> result() override { return {bytes_of(data_.get(), words_)}; }
  std::vector<ByteRange> hottest() override { return result(); }  // every word is used as often as the next

 private:
  std::uint64_t words_;
  std::uint64_t sweeps_;
  std::uint64_t seed_;
  std::unique_ptr<std::uint64_t[]> data_;
};

}  // namespace

Program this_program() {
  Program program;
  program.name = "sweep";
  program.summary = "cyclic read-modify-write of an array; --steps is the number of sweeps";
  program.kind = Kind::kSweeping;
  program.defaults.size = std::uint64_t{512} << 20;
  program.defaults.steps = 4;
  program.tiny_size = std::uint64_t{1} << 20;
  program.tiny_steps = 3;
  program.cases = {{"sweep", {}, {"--size", "128M", "--steps", "4"}}};
  program.prepare = [](const Flags& flags) -> Workload* { return new Sweep(flags); };
  return program;
}

}  // namespace farheap::bench
