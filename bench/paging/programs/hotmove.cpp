// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hotmove: a working set that moves. The data are runs of 64 KiB. In the first half of the steps nearly all of them
// change a run of the lowest two fifths, in the second half one of the highest two fifths; `--strays F` is the
// fraction that goes anywhere instead. A step changes every word of its run, so there is locality inside, and memory
// for half of the data holds all that is hot at any time: what counts is how fast the pager drops what was hot.
#include <memory>
#include <string>
#include <vector>

#include "common/affine_step.hpp"
#include "common/program.hpp"

namespace farheap::bench {
namespace {

constexpr std::uint64_t kRunWords = 8192;

class HotMove final : public Workload {
 public:
  explicit HotMove(const Flags& flags)
      : steps_(flags.steps),
        seed_(flags.seed),
        stray_below_(static_cast<std::uint64_t>(flags.extra.at("strays") * 65536.0)),
        runs_(flags.size / (kRunWords * sizeof(std::uint64_t))),
        hot_runs_(runs_ * 2 / 5),
        data_(new std::uint64_t[runs_ * kRunWords]) {
    for (std::uint64_t i = 0; i < runs_ * kRunWords; ++i) data_[i] = random_at(seed_, i);
  }

  void run_kernel() override {
    for (std::uint64_t step = 0; step < steps_; ++step) {
      std::uint64_t* const run = data_.get() + run_of(step) * kRunWords;
      for (std::uint64_t i = 0; i < kRunWords; ++i) run[i] = AffineStep()(run[i]);
    }
  }

  // A word follows from its first value and from how often its run was changed.
  std::string verify() override {
    std::vector<std::uint64_t> changes(runs_);
    for (std::uint64_t step = 0; step < steps_; ++step) ++changes[run_of(step)];
    for (std::uint64_t run = 0; run < runs_; ++run) {
      const AffineStep all = AffineStep().repeated(changes[run]);
      for (std::uint64_t i = run * kRunWords; i < (run + 1) * kRunWords; ++i) {
        if (data_[i] != all(random_at(seed_, i))) return "word " + std::to_string(i) + " is wrong";
      }
    }
    return "";
  }

  std::uint64_t bytes() const override { return runs_ * kRunWords * sizeof(std::uint64_t); }
  std::uint64_t steps() const override { return steps_; }
  std::vector<ByteRange> result() override { return {bytes_of(data_.get(), runs_ * kRunWords)}; }

  // What is hot first, then what is hot later; a program cannot lock both, and does not know when to change.
  std::vector<ByteRange> hottest() override {
    const std::uint64_t hot_words = hot_runs_ * kRunWords;
    return {bytes_of(data_.get(), hot_words), bytes_of(data_.get() + runs_ * kRunWords - hot_words, hot_words)};
  }

 private:
  std::uint64_t run_of(std::uint64_t step) const {
    const std::uint64_t random = random_at(~seed_, step);
    if ((random & 0xffff) < stray_below_) return scale_random(random, runs_);
    return scale_random(random, hot_runs_) + (step < steps_ / 2 ? 0 : runs_ - hot_runs_);
  }

  std::uint64_t steps_;
  std::uint64_t seed_;
  std::uint64_t stray_below_;
  std::uint64_t runs_;
  std::uint64_t hot_runs_;
  std::unique_ptr<std::uint64_t[]> data_;
};

}  // namespace

Program this_program() {
  Program program;
  program.name = "hotmove";
  program.summary = "a hot set that moves midway; --steps is the number of runs changed, --strays the cold fraction";
  program.kind = Kind::kOther;
  program.defaults.size = std::uint64_t{240} << 20;
  program.defaults.steps = 100'000;
  program.defaults.extra["strays"] = 0.02;
  program.tiny_size = std::uint64_t{2} << 20;
  program.tiny_steps = 500;
  program.cases = {{"hotmove", {}, {"--size", "96M", "--steps", "30000"}}};
  program.prepare = [](const Flags& flags) -> Workload* { return new HotMove(flags); };
  return program;
}

}  // namespace farheap::bench
