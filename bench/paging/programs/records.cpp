// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// records: an index that keeps what its records were before. Keys are put in, and records are changed, in any order;
// a change puts a copy of the old record into its history. Then keys are looked up: each look-up goes along the newest
// records, and few (`--reads F` of those that find their key) look into the history. Newest records and older ones have
// the same size and lie between each other all over memory; the order of look-ups cannot be foreseen.
#include <algorithm>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "common/program.hpp"

namespace farheap::bench {
namespace {

constexpr std::uint64_t kValueWords = 5;
constexpr std::uint64_t kChanges = 6;  // of each record, in the mean

struct Record {
  Record* next;   // in its bucket, or in its history
  Record* older;  // of a record in the index: its history
  std::uint64_t key;
  std::uint64_t value[kValueWords];
};
constexpr std::uint64_t kKeyBytes = (1 + kChanges) * sizeof(Record) + sizeof(Record*);

__attribute__((noinline)) Record* make_newest() {
  void* const memory = std::malloc(sizeof(Record));
  if (memory == nullptr) throw std::bad_alloc();
  return new (memory) Record{};
}

__attribute__((noinline)) Record* make_older(const Record& before) {
  void* const memory = std::malloc(sizeof(Record));
  if (memory == nullptr) throw std::bad_alloc();
  return new (memory) Record(before);
}

class Records final : public Workload {
 public:
  explicit Records(const Flags& flags)
      : flags_(flags),
        keys_(std::max<std::uint64_t>(flags.size / kKeyBytes, 1)),
        read_below_(static_cast<std::uint64_t>(flags.extra.at("reads") * 65536.0)),
        buckets_(keys_) {
    std::uint64_t made = 0;
    for (std::uint64_t step = 0; step < (1 + kChanges) * keys_; ++step) {
      puts_in(step, made) ? put_in(made++) : change(changed_by(step, made));
    }
    while (made < keys_) put_in(made++);
  }
  // They are left to the end of the process: to free them one by one would touch all of them once more.
  ~Records() override {
    static auto& left = *new std::vector<std::vector<Record*>>;
    left.push_back(std::move(buckets_));
  }

  void run_kernel() override {
    for (std::uint64_t step = 0; step < flags_.steps; ++step) {
      const std::uint64_t random = random_at(~flags_.seed, step);
      const Record* const newest = find(key_of(number(random)));
      if (newest == nullptr) continue;
      ++found_;
      sum_ += newest->value[random % kValueWords];
      if (is_read(random) && newest->older != nullptr) history_ += newest->older->value[random % kValueWords];
    }
  }

  std::uint64_t digest() override {
    const std::uint64_t all[] = {found_, sum_, history_};
    return digest_bytes(all, sizeof all);
  }

  // The seed tells how often each record was changed. A word of its value is the key's own word plus that number.
  std::string verify() override {
    std::vector<std::uint64_t> changes(keys_);
    std::uint64_t made = 0;
    for (std::uint64_t step = 0; step < (1 + kChanges) * keys_; ++step) {
      puts_in(step, made) ? ++made : ++changes[changed_by(step, made)];
    }
    std::uint64_t found = 0, sum = 0, history = 0;
    for (std::uint64_t step = 0; step < flags_.steps; ++step) {
      const std::uint64_t random = random_at(~flags_.seed, step);
      const std::uint64_t key = number(random);
      if (key >= keys_) continue;
      ++found;
      sum += word(key, random % kValueWords) + changes[key];
      if (is_read(random) && changes[key] != 0) history += word(key, random % kValueWords) + changes[key] - 1;
    }
    if (found != found_) return "another number of keys was found";
    if (sum != sum_) return "the sum of the newest values is wrong";
    return history == history_ ? "" : "the sum of older values is wrong";
  }

  std::uint64_t bytes() const override { return keys_ * kKeyBytes; }
  std::uint64_t steps() const override { return flags_.steps; }
  std::vector<ByteRange> result() override {
    return {bytes_of(&found_, 1), bytes_of(&sum_, 1), bytes_of(&history_, 1)};
  }
  // The buckets; the newest records lie between the older ones.
  std::vector<ByteRange> hottest() override { return {bytes_of(buckets_.data(), buckets_.size())}; }

 private:
  // A step puts a key in, or changes one of the `made` records that are there.
  bool puts_in(std::uint64_t step, std::uint64_t made) const {
    return made == 0 || (made < keys_ && random_at(flags_.seed + 1, step) % (1 + kChanges) == 0);
  }
  std::uint64_t changed_by(std::uint64_t step, std::uint64_t made) const {
    return scale_random(random_at(flags_.seed + 2, step), made);
  }
  std::uint64_t key_of(std::uint64_t number) const { return random_at(flags_.seed, number); }
  // Half of the look-ups ask for a key that is not there.
  std::uint64_t number(std::uint64_t random) const { return scale_random(random, 2 * keys_); }
  bool is_read(std::uint64_t random) const { return (random & 0xffff) < read_below_; }
  std::uint64_t word(std::uint64_t number, std::uint64_t at) const { return key_of(number) / 2 + at; }
  Record*& bucket(std::uint64_t key) { return buckets_[scale_random(key, buckets_.size())]; }

  void put_in(std::uint64_t number) {
    Record* const newest = make_newest();
    newest->key = key_of(number);
    for (std::uint64_t i = 0; i < kValueWords; ++i) newest->value[i] = word(number, i);
    newest->next = std::exchange(bucket(newest->key), newest);
  }

  void change(std::uint64_t number) {
    Record* const newest = find(key_of(number));
    Record* const older = make_older(*newest);
    older->next = std::exchange(newest->older, older);
    for (std::uint64_t& one : newest->value) ++one;
  }

  Record* find(std::uint64_t key) {
    Record* newest = bucket(key);
    while (newest != nullptr && newest->key != key) newest = newest->next;
    return newest;
  }

  Flags flags_;
  std::uint64_t keys_;
  std::uint64_t read_below_;
  std::vector<Record*> buckets_;
  std::uint64_t found_ = 0, sum_ = 0, history_ = 0;
};

}  // namespace

Program this_program() {
  Program program;
  program.name = "records";
  program.summary =
      "an index and the history of its records; --steps is the number of look-ups, --reads the part of the found keys "
      "whose history is read";
  program.kind = Kind::kOther;
  program.random_trace = true;
  program.defaults.size = std::uint64_t{128} << 20;
  program.defaults.steps = 200'000;
  program.defaults.extra["reads"] = 0.1;
  program.tiny_size = std::uint64_t{1} << 20;
  program.tiny_steps = 10'000;
  program.cases = {{"records", {}, {"--size", "48M", "--steps", "60000"}}};
  program.prepare = [](const Flags& flags) -> Workload* { return new Records(flags); };
  return program;
}

}  // namespace farheap::bench
