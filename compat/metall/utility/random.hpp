// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random numbers: xoshiro512++ and xoshiro1024++ by David Blackman and Sebastiano Vigna ("Scrambled linear
// pseudorandom number generators", 2021), seeded by their splitmix64.
//
// Thread-safety: one thread.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace metall::utility {

namespace detail {

template <std::size_t kWords>
class xoshiro_state {
 public:
  explicit xoshiro_state(std::uint64_t seed) {
    for (std::uint64_t& word : words_) {
      std::uint64_t z = seed += 0x9e3779b97f4a7c15;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
      z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
      word = z ^ (z >> 31);
    }
  }
  bool operator==(const xoshiro_state&) const = default;

 protected:
  std::array<std::uint64_t, kWords> words_;
};

class xoshiro512pp : public xoshiro_state<8> {
 public:
  using xoshiro_state::xoshiro_state;
  std::uint64_t next() {
    auto& s = words_;
    const std::uint64_t result = std::rotl(s[0] + s[2], 17) + s[2];
    const std::uint64_t shifted = s[1] << 11;
    s[2] ^= s[0];
    s[5] ^= s[1];
    s[1] ^= s[2];
    s[7] ^= s[3];
    s[3] ^= s[4];
    s[4] ^= s[5];
    s[0] ^= s[6];
    s[6] ^= s[7];
    s[6] ^= shifted;
    s[7] = std::rotl(s[7], 21);
    return result;
  }
};

class xoshiro1024pp : public xoshiro_state<16> {
 public:
  using xoshiro_state::xoshiro_state;
  std::uint64_t next() {
    const std::size_t before = at_;
    at_ = (at_ + 1) % words_.size();
    const std::uint64_t first = words_[at_];
    std::uint64_t last = words_[before];
    const std::uint64_t result = std::rotl(first + last, 23) + last;
    last ^= first;
    words_[before] = std::rotl(first, 25) ^ last ^ (last << 27);
    words_[at_] = std::rotl(last, 36);
    return result;
  }
  bool operator==(const xoshiro1024pp&) const = default;

 private:
  std::size_t at_ = 0;
};

// As the standard's engines.
template <class Generator>
class random_engine {
 public:
  using result_type = std::uint64_t;

  explicit random_engine(std::uint64_t seed = 123) : generator_(seed) {}
  result_type operator()() { return generator_.next(); }
  bool equal(const random_engine& other) const { return *this == other; }
  bool operator==(const random_engine&) const = default;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }

 private:
  Generator generator_;
};

}  // namespace detail

using rand_512 = detail::random_engine<detail::xoshiro512pp>;
using rand_1024 = detail::random_engine<detail::xoshiro1024pp>;

}  // namespace metall::utility
