// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// sweep: reads, changes and writes every word of a large array in order, again and again. The simplest program
// that kernel swap is bad at: with LRU and a budget below the array, every page misses in every sweep.
#include <memory>
#include <string>

#include "common/program.hpp"

namespace farheap::bench {
namespace {

constexpr std::uint64_t kMultiplier = 6364136223846793005ULL;
constexpr std::uint64_t kIncrement = 1442695040888963407ULL;

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
      for (std::uint64_t i = 0; i < words_; ++i) data_[i] = data_[i] * kMultiplier + kIncrement;
    }
  }

  std::uint64_t digest() override { return digest_bytes(data_.get(), words_ * sizeof(std::uint64_t)); }

  // Every word's value after `sweeps_` steps follows from its first one alone.
  std::string verify() override {
    std::uint64_t multiplier = 1;
    std::uint64_t increment = 0;
    for (std::uint64_t sweep = 0; sweep < sweeps_; ++sweep) {
      multiplier *= kMultiplier;
      increment = increment * kMultiplier + kIncrement;
    }
    for (std::uint64_t i = 0; i < words_; ++i) {
      if (data_[i] != random_at(seed_, i) * multiplier + increment) return "word " + std::to_string(i) + " is wrong";
    }
    return "";
  }

  std::uint64_t bytes() const override { return words_ * sizeof(std::uint64_t); }
  std::uint64_t steps() const override { return sweeps_; }

 private:
  std::uint64_t words_;
  std::uint64_t sweeps_;
  std::uint64_t seed_;
  std::unique_ptr<std::uint64_t[]> data_;
};

}  // namespace
}  // namespace farheap::bench

int main(int count, char** arguments) {
  using namespace farheap::bench;
  Program program;
  program.name = "sweep";
  program.summary = "cyclic read-modify-write of an array; --steps is the number of sweeps";
  program.defaults.size = std::uint64_t{512} << 20;
  program.defaults.steps = 4;
  program.cases = {{"sweep", {}, {"--size", "128M", "--steps", "4"}}};
  program.prepare = [](const Flags& flags) -> Workload* { return new Sweep(flags); };
  return benchmark_main(count, arguments, program);
}
