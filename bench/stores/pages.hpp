// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What both sides of the comparison write and check: pages that are told from every other, and times in order.
//
// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace farheap::bench {

using Clock = std::chrono::steady_clock;

inline double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

inline std::uint64_t word_of(std::uint64_t page, std::size_t index) {
  std::uint64_t z = page * 512 + index + 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}
inline void fill_page(std::uint64_t* page, std::uint64_t number) {
  for (std::size_t i = 0; i < 512; ++i) page[i] = word_of(number, i);
}
inline bool is_page(const std::uint64_t* page, std::uint64_t number) {
  return page[0] == word_of(number, 0) && page[200] == word_of(number, 200) && page[500] == word_of(number, 500);
}

inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace farheap::bench
