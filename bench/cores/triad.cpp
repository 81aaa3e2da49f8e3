// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// triad: a = b + s * c over three arrays, as in STREAM (McCalpin 1995), each thread its own part of them; s grows by
// one with each step. All that a pager has to do is to bring pages in and out in order, as fast as the threads go
// through.
#include <memory>
#include <string>
#include <vector>

#include "common/program.hpp"
#include "common/threads.hpp"

namespace farheap::bench {
namespace {

class Triad final : public Workload {
 public:
  explicit Triad(const Flags& flags)
      : flags_(flags), words_(flags.size / 3 / sizeof(std::uint64_t)), a_(make()), b_(make()), c_(make()) {
    in_threads(flags.threads, [this](unsigned thread) {
      for (std::uint64_t i = begin(thread); i < begin(thread + 1); ++i) {
        a_[i] = 0;
        b_[i] = b_at(i);
        c_[i] = c_at(i);
      }
    });
  }

  void run_kernel() override {
    for (std::uint64_t step = 1; step <= flags_.steps; ++step) {
      in_threads(flags_.threads, [this, step](unsigned thread) {
        for (std::uint64_t i = begin(thread); i < begin(thread + 1); ++i) a_[i] = b_[i] + step * c_[i];
      });
    }
  }

  std::string verify() override {
    for (std::uint64_t i = 0; i < words_; ++i) {
      if (b_[i] != b_at(i) || c_[i] != c_at(i)) return "word " + std::to_string(i) + " of b or c is wrong";
      if (a_[i] != b_at(i) + flags_.steps * c_at(i)) return "word " + std::to_string(i) + " of a is wrong";
    }
    return "";
  }

  std::uint64_t bytes() const override { return 3 * words_ * sizeof(std::uint64_t); }
  std::uint64_t steps() const override { return flags_.steps; }
  std::vector<ByteRange> result() override {
    return {bytes_of(a_.get(), words_), bytes_of(b_.get(), words_), bytes_of(c_.get(), words_)};
  }
  std::vector<ByteRange> hottest() override { return result(); }  // each word is used as often as the next

  // Only the written array is read back: all three would take as long as the kernel itself.
  std::uint64_t digest() override { return digest_bytes(a_.get(), words_ * sizeof(std::uint64_t)); }

 private:
  std::unique_ptr<std::uint64_t[]> make() const { return std::unique_ptr<std::uint64_t[]>(new std::uint64_t[words_]); }
  std::uint64_t b_at(std::uint64_t i) const { return random_at(flags_.seed, i); }
  std::uint64_t c_at(std::uint64_t i) const { return random_at(~flags_.seed, i); }
  std::uint64_t begin(std::uint64_t thread) const { return words_ * thread / flags_.threads; }

  Flags flags_;
  std::uint64_t words_;
  std::unique_ptr<std::uint64_t[]> a_;
  std::unique_ptr<std::uint64_t[]> b_;
  std::unique_ptr<std::uint64_t[]> c_;
};

}  // namespace

Program this_program() {
  Program program;
  program.name = "triad";
  program.summary = "a = b + s * c over three arrays, swept by threads; --steps is the number of sweeps";
  program.kind = Kind::kSweeping;
  program.defaults.size = std::uint64_t{512} << 20;
  program.defaults.steps = 3;
  program.tiny_size = std::uint64_t{1} << 20;
  program.tiny_steps = 3;
  program.cases = {{"triad", {}, {"--size", "128M"}}};
  program.prepare = [](const Flags& flags) -> Workload* { return new Triad(flags); };
  return program;
}

}  // namespace farheap::bench
