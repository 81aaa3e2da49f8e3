// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// lookup: uniform random look-ups in a table that one sequential pass filled. No order to learn, no locality to
// use: what counts is the price of one miss, and knowing which pages are clean. `--writes F` makes a fraction F
// of the look-ups add to the entry instead; additions commute, so threads may meet in any order.
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "common/program.hpp"
#include "common/threads.hpp"

namespace farheap::bench {
namespace {

class Lookup final : public Workload {
 public:
  explicit Lookup(const Flags& flags)
      : flags_(flags),
        entries_(flags.size / sizeof(std::uint64_t)),
        write_below_(static_cast<std::uint64_t>(flags.extra.at("writes") * 65536.0)),
        table_(new std::uint64_t[entries_]),
        sums_(flags.threads) {
    for (std::uint64_t i = 0; i < entries_; ++i) table_[i] = random_at(flags_.seed, i);
  }

  void run_kernel() override {
    in_threads(flags_.threads, [this](unsigned thread) { look_up(thread); });
  }

  std::uint64_t digest() override {
    std::uint64_t sum = 0;
    for (const std::uint64_t one : sums_) sum += one;
    if (write_below_ == 0) return digest_bytes(&sum, sizeof(sum));
    return digest_bytes(table_.get(), entries_ * sizeof(std::uint64_t), sum);
  }

  // What each look-up read follows from the seed; what was added, from the number of writes.
  std::string verify() override {
    std::vector<std::uint64_t> expected(flags_.threads);
    std::uint64_t writes = 0;
    for (std::uint64_t step = 0; step < flags_.steps; ++step) {
      const std::uint64_t random = random_at(~flags_.seed, step);
      if (is_write(random)) {
        ++writes;
      } else {
        expected[step % flags_.threads] += random_at(flags_.seed, place(random)) & kReadMask;
      }
    }
    if (expected != sums_) return "the sum of what was read is wrong";
    std::uint64_t difference = 0;
    for (std::uint64_t i = 0; i < entries_; ++i) difference += table_[i] - random_at(flags_.seed, i);
    return difference == writes * kAdded ? "" : "the table does not hold what was added";
  }

  std::uint64_t bytes() const override { return entries_ * sizeof(std::uint64_t); }
  std::uint64_t steps() const override { return flags_.steps; }
  std::vector<ByteRange> result() override {
    return {bytes_of(sums_.data(), sums_.size()), bytes_of(table_.get(), entries_)};
  }
  // All of the table is as hot as the rest of it.
  std::vector<ByteRange> hottest() override { return {bytes_of(table_.get(), entries_)}; }

 private:
  // Writes change only the upper half of an entry and reads see only the lower: their order cannot matter.
  static constexpr std::uint64_t kAdded = std::uint64_t{1} << 32;
  static constexpr std::uint64_t kReadMask = kAdded - 1;

  bool is_write(std::uint64_t random) const { return (random & 0xffff) < write_below_; }
  std::uint64_t place(std::uint64_t random) const { return scale_random(random, entries_); }

  void look_up(unsigned thread) {
    std::uint64_t sum = 0;
    for (std::uint64_t step = thread; step < flags_.steps; step += flags_.threads) {
      const std::uint64_t random = random_at(~flags_.seed, step);
      std::atomic_ref<std::uint64_t> entry(table_[place(random)]);
      if (is_write(random)) {
        entry.fetch_add(kAdded, std::memory_order_relaxed);
      } else {
        sum += entry.load(std::memory_order_relaxed) & kReadMask;
      }
    }
    sums_[thread] = sum;
  }

  Flags flags_;
  std::uint64_t entries_;
  std::uint64_t write_below_;
  std::unique_ptr<std::uint64_t[]> table_;
  std::vector<std::uint64_t> sums_;
};

}  // namespace

Program this_program() {
  const std::vector<std::string> quick{"--size", "128M", "--steps", "60000"};
  Program program;
  program.name = "lookup";
  program.summary = "random look-ups in a table; --steps is their number, --writes the fraction that adds";
  program.kind = Kind::kRandom;
  program.random_trace = true;
  program.defaults.size = std::uint64_t{512} << 20;
  program.defaults.steps = 300'000;
  program.defaults.extra["writes"] = 0.0;
  program.tiny_size = std::uint64_t{1} << 20;
  program.tiny_steps = 10'000;
  program.cases = {{"lookup_1", {"--threads", "1"}, quick},
                   {"lookup_2", {"--threads", "2"}, quick},
                   {"lookup_writes_1", {"--threads", "1", "--writes", "0.2"}, quick},
                   {"lookup_writes_2", {"--threads", "2", "--writes", "0.2"}, quick}};
  program.prepare = [](const Flags& flags) -> Workload* { return new Lookup(flags); };
  return program;
}

}  // namespace farheap::bench
