// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which budget: how long a recorded program would take in how much memory, on the store it was recorded with. What is
// known are the pages that would be missed (plan/memory_curve.hpp) and what the store can do; not how much of the
// reading is hidden behind the program's own work. So each prediction is two numbers, of a pager that misses as often
// as least recently used does:
//
//   ahead   pages come in large pieces and before they are wanted: the program's own work, or the reading, whichever
//           takes longer
//   alone   each missed page is waited for by itself
//
// What a pager does beside reading (writing, finding out what is in use, compressing) is in neither.
//
// Thread-safety: pure functions.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.hpp"

namespace farheap::tool {

// How far predictions were from what was counted, where that was measured (docs/benchmarks/record.md): the difference
// of misses, in shares of all uses, over the sizes that are told.
struct KnownError {
  unsigned programs = 0;      // that it was measured of; 0: it was not
  double mean = 0, most = 0;  // of these programs
};

// A policy says which page leaves when there is no room. Only these are predicted.
struct PredictedPolicy {
  std::string_view key, name, leaves;
  KnownError misses;  // of seconds none is known
};
inline constexpr std::array<PredictedPolicy, 3> kPredictedPolicies = {{
    {"lru", "LRU", "what was used least recently leaves first", {4, 0.083, 0.879}},
    {"farheap", "Farheap", "as its own pager chooses, which is driven with the recorded uses", {7, 0.046, 0.120}},
    {"best", "oracle", "what is needed last leaves first, which nobody can know", {4, 0.029, 0.098}},
}};
// "not measured", or how far in the mean.
[[nodiscard]] std::string error_text(const KnownError& error);

struct MemoryPrediction {
  std::uint64_t memory_bytes = 0;
  double lru_misses = 0, farheap_misses = 0, best_misses = 0;  // pages read again
  double ahead_seconds = 0, alone_seconds = 0;                 // of LRU's
  double farheap_seconds = 0, best_seconds = 0;                // ahead
};

struct MemoryAdvice {
  int process = 0;  // the one that used most pages
  std::uint64_t whole_bytes = 0;
  double own_seconds = 0;  // that the program took without waiting for pages
  std::uint64_t sampled_pages = 0, uses = 0;
  double pages_for_one = 1;
  double read_us = 0, read_mb_per_second = 0;  // of the store: a page by itself, and in large pieces
  std::vector<MemoryPrediction> points;        // from little memory to much
  std::uint64_t enough_bytes = 0;  // where page by page costs at most a fifth more than its own time; 0: not told
  std::string caution;             // why it is not
  std::string missing;             // why there are no points; empty: there are
};

// Whether they are enough for predictions.
[[nodiscard]] bool tells_reading(const std::vector<profile::StoreSpeed>& store);

// `seconds`: how long the run took.
[[nodiscard]] MemoryAdvice memory_advice(const profile::Profile& profile, double seconds);

}  // namespace farheap::tool
