// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which budget: how long a recorded program would take in how much memory, on the store it was recorded with.
//
// A replay tells it of Farheap, with its own policy and with a plan (plan/pager_curve.hpp): the program works while
// the store reads and writes. Of other policies the pages are known that they would read (plan/memory_curve.hpp), and
// not how much of the reading is hidden behind the program's own work. So there are bounds:
//
//   ahead   pages come in large pieces and before they are wanted: the program's own work, or the reading, whichever
//           takes longer
//   alone   each missed page is waited for by itself
//
// The processor's time for a pager's own work is in none of them.
//
// Thread-safety: pure functions, except that debugging information is read for the words of a plan.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "plan/candidates.hpp"
#include "plan/replay.hpp"
#include "profile/profile.hpp"

namespace farheap::tool {

// How far predictions were from what was counted, where that was measured (docs/benchmarks/record.md), over the sizes
// that are told. Of misses the difference in shares of all uses, of seconds in shares of those that it took.
struct KnownError {
  unsigned programs = 0;      // that it was measured of; 0: it was not
  double mean = 0, most = 0;  // of these programs
};

// A policy says which page leaves when there is no room. Only these are predicted.
struct PredictedPolicy {
  std::string_view key, name, leaves;
  KnownError misses, seconds = {};
};
inline constexpr std::array<PredictedPolicy, 4> kPredictedPolicies = {{
    {"lru", "LRU", "what was used least recently leaves first", {4, 0.083, 0.879}},
    {"farheap",
     "Farheap",
     "as its own pager chooses, which is driven with the recorded uses",
     {7, 0.046, 0.194},
     {7, 0.20, 0.45}},
    {"planned",
     "plan",
     "as its pager chooses that follows the plan which `farheap plan` makes of this profile",
     {4, 0.046, 0.100},
     {4, 0.23, 0.85}},
    {"best", "oracle", "what is needed last leaves first, which nobody can know", {4, 0.029, 0.098}},
}};
// "not measured", or how far in the mean.
[[nodiscard]] std::string error_text(const KnownError& error);
[[nodiscard]] std::string seconds_error_text(const KnownError& error);

struct MemoryPrediction {
  std::uint64_t memory_bytes = 0;
  double lru_misses = 0, farheap_misses = 0, best_misses = 0;  // pages read again
  double ahead_seconds = 0, alone_seconds = 0;                 // of LRU's
  double farheap_seconds = 0;                                  // as the pager reads; its own work is not in it
  double planned_misses = 0, planned_seconds = 0;              // the same with a plan, if there is one
  double best_seconds = 0;                                     // ahead
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
  std::string no_plan;             // why there are no figures of a plan; empty: there are
  std::string plan_words;          // the plan that `farheap plan` makes of it; empty: it makes none
  std::string missing;             // why there are no points; empty: there are
};

// The speeds of a run that took so long. A speed of the store that is not known is 0.
[[nodiscard]] plan::Speeds speeds_of(const profile::Profile& profile, const profile::ProcessProfile& process,
                                     double seconds);

// Scores a plan of the profile as `farheap plan` and the report tell it. A run that waited for memory does not tell how
// long its own work takes: its score has no times. `hints`: as for plan::score_plan().
[[nodiscard]] plan::PlanScore score_of(const profile::Profile& profile, const plan::MadePlan& made, double seconds,
                                       const plan::HintPlan* hints);

// Whether they are enough for predictions.
[[nodiscard]] bool tells_reading(const std::vector<profile::StoreSpeed>& store);

// `seconds`: how long the run took.
[[nodiscard]] MemoryAdvice memory_advice(const profile::Profile& profile, double seconds);

}  // namespace farheap::tool
