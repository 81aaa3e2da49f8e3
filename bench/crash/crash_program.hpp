// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program that is killed (crash_world.hpp), and what both sides know of its steps.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>

#include "crash_world.hpp"

namespace farheap::crash {

// Small, so that pages leave memory while the program works.
inline constexpr HeapOptions kOptions{.memory = 16_MiB, .capacity = 4_GiB};

using KeptText = std::basic_string<char, std::char_traits<char>, allocator<char>>;
using Table = std::map<int, KeptText, std::less<>, allocator<std::pair<const int, KeptText>>>;

inline std::string name_of(const char* what, std::uint64_t number) { return what + std::to_string(number); }

// Names of step k of a thread: made by it, and by no other; the one of four steps before is destroyed.
inline constexpr std::uint64_t kNamesKept = 4;
inline std::string step_name(unsigned thread, std::uint64_t step) {
  return std::to_string(thread) + "/" + std::to_string(step);
}

template <class Set, class Erase>
void step(unsigned thread, std::uint64_t k, const Set& set, const Erase& erase) {
  std::mt19937_64 random(k * 977 + thread * 13 + 5);
  for (int i = 0; i < 25; ++i) {
    const int key = static_cast<int>(random() % 400);
    if (random() % 3 == 0) {
      erase(key);
    } else {
      const std::uint32_t most = random() % 8 == 0 ? 200'000 : 3000;
      set(key, static_cast<std::uint32_t>(random() % most), static_cast<char>('a' + random() % 26));
    }
  }
}

// Never returns; ends with a status when something that must not fail does.
[[noreturn]] void work(const std::string& uri, std::uint64_t seed, Progress& progress);

}  // namespace farheap::crash
