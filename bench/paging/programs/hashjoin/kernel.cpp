// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernel.hpp"

#include "common/program.hpp"

namespace farheap::bench {
namespace {

constexpr std::uint64_t kMultiplier = 0x9fb21c651e98df25ULL;
constexpr unsigned kShift = 32;

// The inverse of an odd number modulo 2^64, by Newton: every round doubles the bits that are right, three at first.
constexpr std::uint64_t inverse_of(std::uint64_t odd) {
  std::uint64_t inverse = odd;
  for (int round = 0; round < 5; ++round) inverse *= 2 - odd * inverse;
  return inverse;
}
static_assert(inverse_of(kMultiplier) * kMultiplier == 1);

}  // namespace

std::uint64_t hash_of(std::uint64_t key) {
  key = (key ^ (key >> kShift)) * kMultiplier;
  return (key ^ (key >> kShift)) * kMultiplier;
}

// A shift by half a word is its own inverse.
std::uint64_t key_with_hash(std::uint64_t hash) {
  hash *= inverse_of(kMultiplier);
  hash = (hash ^ (hash >> kShift)) * inverse_of(kMultiplier);
  return hash ^ (hash >> kShift);
}

Relations::Relations(std::uint64_t built, std::uint64_t seed)
    : built_(built), gap_((~std::uint64_t{0} / built) & ~std::uint64_t{1}), seed_(seed) {}

// One in every gap, even and never 0: an odd hash is that of no built tuple, hash 0 that of the empty key.
std::uint64_t Relations::hash_at(std::uint64_t number) const {
  return number * gap_ + 2 + (scale_random(random_at(seed_, number), gap_ - 2) & ~std::uint64_t{1});
}

Tuple Relations::built_at(std::uint64_t number) const {
  const std::uint64_t key = key_with_hash(hash_at(number));
  return {key, random_at(seed_ + 1, key)};
}

Relations::Probe Relations::probe_at(std::uint64_t number) const {
  const std::uint64_t random = random_at(~seed_, number);
  const bool matches = (random & 0xffff) % 5 != 0;
  const std::uint64_t partner = scale_random(random, built_);
  const std::uint64_t hash = hash_at(partner) + (matches ? 0 : 1);
  return {{key_with_hash(hash), random_at(seed_ + 2, number)}, partner, matches};
}

JoinTable::JoinTable(std::uint64_t slots, const Relations& relations) : count_(slots), slots_(new Tuple[slots]) {
  for (std::uint64_t number = 0; number < relations.built(); ++number) insert(relations.built_at(number));
}

void JoinTable::insert(const Tuple& tuple) {
  std::uint64_t slot = scale_random(hash_of(tuple.key), count_);
  while (slots_[slot].key != 0) slot = slot + 1 == count_ ? 0 : slot + 1;
  slots_[slot] = tuple;
}

Joined JoinTable::probe(const Tuple& tuple) const {
  Joined joined;
  std::uint64_t slot = scale_random(hash_of(tuple.key), count_);
  for (; slots_[slot].key != 0; slot = slot + 1 == count_ ? 0 : slot + 1) {
    if (slots_[slot].key == tuple.key) joined.add(slots_[slot].payload, tuple.payload);
  }
  return joined;
}

}  // namespace farheap::bench
