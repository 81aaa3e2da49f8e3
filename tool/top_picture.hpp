// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `farheap top` shows of one run: what happened between two samples, as text.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "run_sample.hpp"

namespace farheap::tool {

struct RunPicture {
  std::string command;
  int tool = 0;   // the process number of `farheap run`
  Sample before;  // an empty one: since the run began
  Sample now;
};

// Lines, each ended.
[[nodiscard]] std::string picture_text(const RunPicture& run);

// The ranges where most time was lost, and of those without any, where most bytes moved.
[[nodiscard]] std::vector<RangeSample> hottest(std::vector<RangeSample> ranges, std::size_t most);
// "0x200000400000 + 4.0 MiB"
[[nodiscard]] std::string range_text(std::uint64_t heap_address, const RangeSample& range);
// As format_size(); more than there can be counts as 8 EiB.
[[nodiscard]] std::string size_text(double bytes);

}  // namespace farheap::tool
