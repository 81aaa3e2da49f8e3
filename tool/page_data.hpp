// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the page of a report has besides the report itself: rows of numbers for its charts, and less of what is too
// long for it.
//
// Thread-safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "profile_figures.hpp"
#include "trace_series.hpp"

namespace farheap::tool {

// Of all processes: memory, faults a second by kind, bytes a second, per cent of stalls, and where in the heap.
[[nodiscard]] nlohmann::ordered_json timeline_json(const Trace& trace);
// What each process was seen to hold at the most, and its counts; the largest first.
[[nodiscard]] nlohmann::ordered_json processes_json(const Trace& trace);

inline constexpr std::size_t kMostRows = 2000;

// Leaves the `most` largest sites by their share of any weight, and as many lines; answers what went.
[[nodiscard]] nlohmann::ordered_json leave_largest(ProfileFigures& figures, std::size_t most = kMostRows);

}  // namespace farheap::tool
