// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bytes as tests write and compare them: a page at a time. Word by word, a sanitizer looks at each; and libstdc++
// compares std::byte one by one.
//
// Thread-safety: functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace farheap::test {

[[nodiscard]] inline bool same_bytes(std::span<const std::byte> one, std::span<const std::byte> other) {
  return one.size() == other.size() && (one.empty() || std::memcmp(one.data(), other.data(), one.size()) == 0);
}

// One word over and over. Requires: bytes % 8 == 0, as below.
inline void repeat_word(std::byte* at, std::size_t bytes, std::uint64_t word) {
  if (bytes != 0) std::memcpy(at, &word, sizeof word);
  for (std::size_t done = sizeof word; done < bytes; done *= 2)
    std::memcpy(at + done, at, std::min(done, bytes - done));
}
[[nodiscard]] inline bool repeats_word(const std::byte* at, std::size_t bytes, std::uint64_t word) {
  return bytes == 0 ||
         (std::memcmp(at, &word, sizeof word) == 0 && std::memcmp(at, at + sizeof word, bytes - sizeof word) == 0);
}

// `first`, `first` + 1 and so on.
struct CountedWords {
  static constexpr std::size_t kWords = 512;
  std::uint64_t words[kWords];
  // Nobody else knows of these.
  __attribute__((no_sanitize("thread"))) explicit CountedWords(std::uint64_t first) {
    for (std::uint64_t& word : words) word = first++;
  }
};
inline void count_words(std::byte* at, std::size_t bytes, std::uint64_t first) {
  for (; bytes != 0; first += CountedWords::kWords) {
    const CountedWords counted(first);
    const std::size_t here = std::min(bytes, sizeof counted.words);
    std::memcpy(at, counted.words, here);
    at += here, bytes -= here;
  }
}
[[nodiscard]] inline bool counts_words(const std::byte* at, std::size_t bytes, std::uint64_t first) {
  for (; bytes != 0; first += CountedWords::kWords) {
    const CountedWords counted(first);
    const std::size_t here = std::min(bytes, sizeof counted.words);
    if (std::memcmp(at, counted.words, here) != 0) return false;
    at += here, bytes -= here;
  }
  return true;
}

}  // namespace farheap::test
