// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hash join of two relations. Build: the tuples of the first go into a table with open addressing (linear probing,
// 3/5 full); they come in the order of their hash, as a radix partitioning leaves them, so that building sweeps the
// table once. Probe: the keys of the second are uniformly random, one in five without a partner, and each costs a
// cache line, and in a short memory a page, of a table without locality. What is measured is the probe.
//
// Thread-safety: probe() may run in several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace farheap::bench {

struct Tuple {
  std::uint64_t key = 0;  // 0: an empty slot; no tuple has it
  std::uint64_t payload = 0;
};

// A bijection, so that keys can be made in the order of their hash.
[[nodiscard]] std::uint64_t hash_of(std::uint64_t key);
[[nodiscard]] std::uint64_t key_with_hash(std::uint64_t hash);

// The two relations, each a function of the seed and the tuple's number.
class Relations {
 public:
  Relations(std::uint64_t built, std::uint64_t seed);

  [[nodiscard]] std::uint64_t built() const { return built_; }
  [[nodiscard]] Tuple built_at(std::uint64_t number) const;  // ascending by hash

  struct Probe {
    Tuple tuple;
    std::uint64_t partner;  // number of the built tuple with the same key
    bool matches;           // whether there is one
  };
  [[nodiscard]] Probe probe_at(std::uint64_t number) const;

 private:
  [[nodiscard]] std::uint64_t hash_at(std::uint64_t number) const;

  std::uint64_t built_;
  std::uint64_t gap_;  // between the hashes of neighbours, on the average; even
  std::uint64_t seed_;
};

// What a join is reduced to, in any order.
struct Joined {
  std::uint64_t pairs = 0;
  std::uint64_t sum = 0;  // of the products of the payloads of each pair

  void add(std::uint64_t built_payload, std::uint64_t probe_payload) {
    ++pairs;
    sum += built_payload * probe_payload;
  }
  Joined& operator+=(const Joined& other) {
    pairs += other.pairs;
    sum += other.sum;
    return *this;
  }
  bool operator==(const Joined&) const = default;
};

class JoinTable {
 public:
  // Requires: slots > relations.built().
  JoinTable(std::uint64_t slots, const Relations& relations);

  [[nodiscard]] Joined probe(const Tuple& tuple) const;
  [[nodiscard]] std::span<Tuple> slots() { return {slots_.get(), count_}; }

 private:
  void insert(const Tuple& tuple);

  std::uint64_t count_;
  std::unique_ptr<Tuple[]> slots_;
};

}  // namespace farheap::bench
