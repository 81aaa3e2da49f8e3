// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "common/program.hpp"

#include "common/threads.hpp"
#include "kernel.hpp"
#include "verify.hpp"

namespace farheap::bench {
namespace {

class HashJoin final : public Workload {
 public:
  explicit HashJoin(const Flags& flags)
      : flags_(flags),
        relations_(flags.size / sizeof(Tuple) * 3 / 5, flags.seed),
        table_(flags.size / sizeof(Tuple), relations_),
        joined_(flags.threads) {}

  void run_kernel() override {
    in_threads(flags_.threads, [this](unsigned thread) {
      Joined joined;
      for (std::uint64_t number = thread; number < flags_.steps; number += flags_.threads) {
        joined += table_.probe(relations_.probe_at(number).tuple);
      }
      joined_[thread] = joined;
    });
  }

  std::uint64_t digest() override {
    Joined all;
    for (const Joined& joined : joined_) all += joined;
    return digest_bytes(&all, sizeof(all));
  }
  std::string verify() override { return verify_join(relations_, table_.slots(), joined_, flags_.steps); }
  std::uint64_t bytes() const override { return flags_.size; }
  std::uint64_t steps() const override { return flags_.steps; }
  std::vector<ByteRange> result() override {
    return {bytes_of(joined_.data(), joined_.size()), std::as_writable_bytes(table_.slots())};
  }
  // All of the table is as hot as the rest of it.
  std::vector<ByteRange> hottest() override { return {std::as_writable_bytes(table_.slots())}; }

 private:
  Flags flags_;
  Relations relations_;
  JoinTable table_;
  std::vector<Joined> joined_;  // by thread
};

}  // namespace

Program this_program() {
  const std::vector<std::string> quick{"--size", "96M", "--steps", "60000"};
  Program program;
  program.name = "hashjoin";
  program.summary = "probing a hash table with random keys; --steps is their number";
  program.kind = Kind::kRandom;
  program.random_trace = true;
  program.defaults.size = std::uint64_t{256} << 20;
  program.defaults.steps = 300'000;
  program.tiny_size = std::uint64_t{1} << 20;
  program.tiny_steps = 10'000;
  program.cases = {{"hashjoin_1", {"--threads", "1"}, quick}, {"hashjoin_2", {"--threads", "2"}, quick}};
  program.prepare = [](const Flags& flags) -> Workload* { return new HashJoin(flags); };
  return program;
}

}  // namespace farheap::bench
