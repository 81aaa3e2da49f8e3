// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A trace as rows of numbers, one for each of equal pieces of its time: what charts are drawn from.
//
// Thread-safety: pure functions.
#pragma once

#include <functional>
#include <vector>

#include "trace_reader.hpp"

namespace farheap::tool {

using Series = std::vector<double>;

// How much a second `amount` grew by in each of `pieces` pieces of the run. Between two samples it is taken as even:
// the sum over the pieces, times their length, is what was counted.
[[nodiscard]] Series rate_series(const Trace& trace, std::size_t pieces, std::uint64_t CounterValues::* amount);
// The largest value in each piece; the last one before it where it has no sample.
[[nodiscard]] Series level_series(const Trace& trace, std::size_t pieces,
                                  const std::function<std::uint64_t(const Sample&)>& level);

// The heap's addresses over time: bytes in and out a second, of all processes together.
struct HeatMap {
  std::uint64_t end_offset = 0;  // of the heap as far as it was used
  std::size_t rows = 0;          // of addresses, the first is the lowest
  std::size_t columns = 0;       // of time
  Series bytes_per_second;       // row by row
};
[[nodiscard]] HeatMap heat_map(const Trace& trace, std::size_t rows, std::size_t columns);

// What happened in each range over the whole run, all ranges of a process equally long.
[[nodiscard]] std::vector<RangeSample> whole_ranges(const Trace& trace);

// The end of the recording, no less than a microsecond.
[[nodiscard]] double duration(const Trace& trace);

}  // namespace farheap::tool
