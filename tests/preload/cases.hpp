// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Small programs that know nothing of Farheap, each a named case of one executable: `preload_cases NAME`. They check
// themselves, print what they found, and must do and print the same with and without `farheap run`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace cases {

using Body = void (*)();
struct Case {
  Case(const char* name, Body body);
};

// Beyond any budget that the driver gives.
inline constexpr std::size_t kMebibyte = std::size_t{1} << 20;
inline constexpr std::size_t kLarge = 96 * kMebibyte;
inline constexpr std::size_t kPage = 4096;

// Ends the program with status 3 and the line that failed.
[[noreturn]] void failed(const char* file, int line, const char* what);

// A different word for every seed and place.
[[nodiscard]] std::uint64_t word(std::uint64_t seed, std::size_t index);
void fill(void* at, std::size_t bytes, std::uint64_t seed);
// The number of the first wrong word, or -1.
[[nodiscard]] long first_wrong(const void* at, std::size_t bytes, std::uint64_t seed);
[[nodiscard]] bool all_zero(const void* at, std::size_t bytes);

// Sweeps through so much memory that what was there before has left.
void push_out();

// Waits for a child; its exit status, or 128 + its signal.
[[nodiscard]] int status_of(int child);

// The arguments after the case's name.
extern int g_count;
extern char** g_arguments;

}  // namespace cases

#define CASE(name)                                   \
  static void name();                                \
  static const cases::Case case_##name(#name, name); \
  static void name()

#define CHECK(what)                                        \
  do {                                                     \
    if (!(what)) cases::failed(__FILE__, __LINE__, #what); \
  } while (false)
#define CHECK_FILLED(at, bytes, seed) CHECK(cases::first_wrong(at, bytes, seed) == -1)
