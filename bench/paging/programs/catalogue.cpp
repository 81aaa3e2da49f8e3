// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// catalogue: of each item it has a description and a count of what is in stock, both of one size, allocated one behind
// the other as items come. It works in turns: for a while descriptions are looked up, then what is sold and delivered
// is counted, and so on. So of all pages half is wanted at a time, but each has some of both; which items come cannot
// be foreseen.
#include <algorithm>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "common/program.hpp"

namespace farheap::bench {
namespace {

constexpr std::uint64_t kWords = 8;

struct Description {
  std::uint64_t words[kWords];
};
struct Stock {
  std::uint64_t number;
  std::uint64_t pieces;
  std::uint64_t changes[kWords - 2];  // the last ones
};
static_assert(sizeof(Description) == sizeof(Stock));
constexpr std::uint64_t kItemBytes = 2 * (sizeof(Description) + sizeof(void*));

__attribute__((noinline)) Description* make_description() {
  void* const memory = std::malloc(sizeof(Description));
  if (memory == nullptr) throw std::bad_alloc();
  return new (memory) Description{};
}

__attribute__((noinline)) Stock* make_stock() {
  void* const memory = std::malloc(sizeof(Stock));
  if (memory == nullptr) throw std::bad_alloc();
  return new (memory) Stock{};
}

// Objects are left to the end of the process: to free them one by one would touch all of them once more.
auto& left_behind() {
  static auto& all = *new std::vector<std::pair<std::vector<Description*>, std::vector<Stock*>>>;
  return all;
}

class Catalogue final : public Workload {
 public:
  explicit Catalogue(const Flags& flags)
      : flags_(flags),
        turns_(std::max<std::uint64_t>(static_cast<std::uint64_t>(flags.extra.at("turns")), 1)),
        items_(std::max<std::uint64_t>(flags.size / kItemBytes, 1)) {
    for (std::uint64_t item = 0; item < items_; ++item) {
      Description* const description = descriptions_.emplace_back(make_description());
      for (std::uint64_t i = 0; i < kWords; ++i) description->words[i] = word(item, i);
      stocks_.emplace_back(make_stock())->number = item;
    }
  }
  ~Catalogue() override { left_behind().emplace_back(std::move(descriptions_), std::move(stocks_)); }

  void run_kernel() override {
    for (std::uint64_t step = 0; step < flags_.steps; ++step) {
      const std::uint64_t random = random_at(~flags_.seed, step);
      const std::uint64_t item = scale_random(random, items_);
      if (is_of_descriptions(step)) {
        sum_ += descriptions_[item]->words[random % kWords];
      } else {
        Stock& stock = *stocks_[item];
        stock.pieces += random % 64;
        stock.changes[stock.pieces % (kWords - 2)] = step;
        pieces_ += stock.pieces;
      }
    }
  }

  std::uint64_t digest() override {
    const std::uint64_t all[] = {sum_, pieces_};
    return digest_bytes(all, sizeof all);
  }

  // The seed tells each description, and what was booked.
  std::string verify() override {
    std::vector<std::uint64_t> in_stock(items_);
    std::uint64_t sum = 0, pieces = 0;
    for (std::uint64_t step = 0; step < flags_.steps; ++step) {
      const std::uint64_t random = random_at(~flags_.seed, step);
      const std::uint64_t item = scale_random(random, items_);
      if (is_of_descriptions(step)) {
        sum += word(item, random % kWords);
      } else {
        pieces += in_stock[item] += random % 64;
      }
    }
    if (sum != sum_) return "the sum of the descriptions is wrong";
    return pieces == pieces_ ? "" : "the sum of what is in stock is wrong";
  }

  std::uint64_t bytes() const override { return items_ * kItemBytes; }
  std::uint64_t steps() const override { return flags_.steps; }
  std::vector<ByteRange> result() override { return {bytes_of(&sum_, 1), bytes_of(&pieces_, 1)}; }
  // Where objects are; they themselves lie all over memory.
  std::vector<ByteRange> hottest() override {
    return {bytes_of(descriptions_.data(), descriptions_.size()), bytes_of(stocks_.data(), stocks_.size())};
  }

 private:
  bool is_of_descriptions(std::uint64_t step) const { return step * turns_ / flags_.steps % 2 == 0; }
  std::uint64_t word(std::uint64_t item, std::uint64_t at) const { return random_at(flags_.seed + at, item); }

  Flags flags_;
  std::uint64_t turns_;
  std::uint64_t items_;
  std::vector<Description*> descriptions_;
  std::vector<Stock*> stocks_;
  std::uint64_t sum_ = 0, pieces_ = 0;
};

}  // namespace

Program this_program() {
  Program program;
  program.name = "catalogue";
  program.summary =
      "descriptions and what is in stock, worked with in turns; --steps is the number of items that are looked at, "
      "--turns how often it goes from the one to the other";
  program.kind = Kind::kOther;
  program.random_trace = true;
  program.defaults.size = std::uint64_t{128} << 20;
  program.defaults.steps = 400'000;
  program.defaults.extra["turns"] = 6;
  program.tiny_size = std::uint64_t{1} << 20;
  program.tiny_steps = 10'000;
  program.cases = {{"catalogue", {}, {"--size", "48M", "--steps", "150000"}}};
  program.prepare = [](const Flags& flags) -> Workload* { return new Catalogue(flags); };
  return program;
}

}  // namespace farheap::bench
