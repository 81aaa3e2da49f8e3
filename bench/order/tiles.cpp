// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tiles: reads, changes and writes every word of an array, tile by tile of 2 MiB, in an order that chance chose and
// that is the same in each of its --steps rounds. No pattern of addresses tells which tile comes next; the program
// knows.
//
//   --say 0   it says nothing
//   --say 1   it says the order once, as a round, before it begins
//   --say 2   ... before each round, of that round alone
//   --say 3   it says another order than its own
//
// Linked without libfarheap: who loads the runtime makes the words heard.
#define FARHEAP_WEAK_HINTS
#include <farheap/farheap.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <string>

#include "common/affine_step.hpp"
#include "common/program.hpp"

namespace farheap::bench {
namespace {

constexpr std::uint64_t kTileBytes = std::uint64_t{2} << 20, kTileWords = kTileBytes / sizeof(std::uint64_t);

class Tiles final : public Workload {
 public:
  explicit Tiles(const Flags& flags)
      : tiles_(flags.size / kTileBytes),
        rounds_(flags.steps),
        seed_(flags.seed),
        say_(static_cast<int>(flags.extra.at("say"))),
        order_(shuffled(seed_)),
        data_(new std::uint64_t[tiles_ * kTileWords]) {
    for (std::uint64_t i = 0; i < tiles_ * kTileWords; ++i) data_[i] = random_at(seed_, i);
  }

  void run_kernel() override {
    if (say_ == 1) say(order_, 0);
    if (say_ == 3) say(shuffled(seed_ + 1), 0);
    for (std::uint64_t round = 0; round < rounds_; ++round) {
      if (say_ == 2) say(order_, FARHEAP_ONCE);
      for (const std::uint64_t tile : order_) {
        std::uint64_t* const words = data_.get() + tile * kTileWords;
        for (std::uint64_t i = 0; i < kTileWords; ++i) words[i] = AffineStep()(words[i]);
      }
    }
  }

  std::string verify() override {
    const AffineStep all = AffineStep().repeated(rounds_);
    for (std::uint64_t i = 0; i < tiles_ * kTileWords; ++i) {
      if (data_[i] != all(random_at(seed_, i))) return "word " + std::to_string(i) + " is wrong";
    }
    return "";
  }

  std::uint64_t bytes() const override { return tiles_ * kTileBytes; }
  std::uint64_t steps() const override { return rounds_; }
  std::vector<ByteRange> result() override { return {bytes_of(data_.get(), tiles_ * kTileWords)}; }
  std::vector<ByteRange> hottest() override { return result(); }  // every tile is used as often as the next

 private:
  [[nodiscard]] std::vector<std::uint64_t> shuffled(std::uint64_t seed) const {
    std::vector<std::uint64_t> order(tiles_);
    std::iota(order.begin(), order.end(), 0);
    std::mt19937_64 random(seed);
    for (std::uint64_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    return order;
  }
  void say(const std::vector<std::uint64_t>& order, std::size_t round) const {
    if (&farheap_expect_order == nullptr) return;
    std::vector<farheap_step> steps;
    for (const std::uint64_t tile : order) {
      steps.push_back({data_.get() + tile * kTileWords, kTileBytes, FARHEAP_FORWARD});
    }
    (void)farheap_expect_order(steps.data(), steps.size(), round);
  }

  std::uint64_t tiles_;
  std::uint64_t rounds_;
  std::uint64_t seed_;
  int say_;
  std::vector<std::uint64_t> order_;
  std::unique_ptr<std::uint64_t[]> data_;
};

}  // namespace

Program this_program() {
  Program program;
  program.name = "tiles";
  program.summary = "read-modify-write of an array in tiles, in a shuffled order; --steps is the number of rounds";
  program.kind = Kind::kSweeping;
  program.defaults.size = std::uint64_t{512} << 20;
  program.defaults.steps = 4;
  program.defaults.extra["say"] = 0;
  program.tiny_size = std::uint64_t{8} << 20;
  program.tiny_steps = 3;
  program.cases = {{"tiles", {}, {"--size", "128M", "--steps", "4"}}};
  program.prepare = [](const Flags& flags) -> Workload* { return new Tiles(flags); };
  return program;
}

}  // namespace farheap::bench
