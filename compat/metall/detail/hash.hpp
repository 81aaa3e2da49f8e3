// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hashes that are the same in every run, unlike what std::hash promises: for containers that are kept. They are not
// Metall's values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace metall::mtlldetail {

// Eight bytes at a time through a 64 x 64 bit multiplication, folded (as wyhash and its kin).
[[nodiscard]] inline std::uint64_t hash_bytes(const void* from, std::size_t bytes, std::uint64_t seed) noexcept {
  const auto fold = [](std::uint64_t a, std::uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a ^ 0xa0761d6478bd642fULL) * (b ^ 0xe7037ed1a0b428dbULL);
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  };
  const auto* at = static_cast<const unsigned char*>(from);
  std::uint64_t hash = fold(seed, bytes);
  while (bytes > 0) {
    std::uint64_t word = 0;
    const std::size_t taken = bytes < sizeof word ? bytes : sizeof word;
    std::memcpy(&word, at, taken);
    hash = fold(hash, word);
    at += taken;
    bytes -= taken;
  }
  return fold(hash, seed);
}

// Of the bytes of a value. Requires: T has no padding and no pointers.
template <unsigned int kSeed = 123>
struct hash {
  template <class T>
  std::size_t operator()(const T& key) const noexcept {
    static_assert(std::is_trivially_copyable_v<T>, "only plain values are hashed by their bytes");
    return hash_bytes(&key, sizeof key, kSeed);
  }
};

// Of whatever is like a string of characters; equal texts of different types have the same.
template <unsigned int kSeed = 123>
struct str_hash {
  using is_transparent = void;

  std::size_t operator()(const char* text) const noexcept { return hash_bytes(text, std::strlen(text), kSeed); }
  template <class String>
    requires(!std::is_convertible_v<const String&, const char*>)
  std::size_t operator()(const String& text) const noexcept {
    return hash_bytes(text.data(), text.size() * sizeof(typename String::value_type), kSeed);
  }
};

}  // namespace metall::mtlldetail
