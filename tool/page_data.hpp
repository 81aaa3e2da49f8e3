// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The data of a report's page besides the report itself: rows of numbers for its charts, and lists that are short
// enough for it.
//
// Thread-safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "profile_figures.hpp"
#include "trace_series.hpp"

namespace farheap::tool {

// Memory, faults a second by kind, bytes and stalled time a second, and where in the heap bytes moved, of all
// processes.
[[nodiscard]] nlohmann::ordered_json timeline_json(const Trace& trace);
// The most that each process was seen to hold, and its counts; the largest first.
[[nodiscard]] nlohmann::ordered_json processes_json(const Trace& trace);

inline constexpr std::size_t kMostRows = 2000;

// Leaves the `most` largest sites by their share of any weight, and as many lines; answers what went.
[[nodiscard]] nlohmann::ordered_json leave_largest(ProfileFigures& figures, std::size_t most = kMostRows);

}  // namespace farheap::tool
