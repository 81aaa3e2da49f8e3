// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads what TraceRecorder wrote. The bytes may be anybody's: all that is answered was checked.
//
// Thread-safety: pure functions.
#pragma once

#include <farheap/result.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run_sample.hpp"

namespace farheap::tool {

struct Trace {
  struct End {
    int exit_status = 0;
    int signal = 0;
  };
  std::vector<std::string> command;  // at least one word
  std::string store;
  int pid = 0;                  // of `farheap run`
  std::vector<Sample> samples;  // at least one; their times do not decrease, their counters neither
  std::optional<End> end;       // none: the recording was cut off
  bool cut_line = false;        // ... in the middle of a line, which is left out

  [[nodiscard]] const Sample& last() const { return samples.back(); }
};

// kCorrupt with the number of the line; kUnavailable for a newer format. `name` is the subject of errors.
[[nodiscard]] Result<Trace> parse_trace(std::string_view text, const std::string& name);
[[nodiscard]] Result<Trace> read_trace(const std::string& path);

}  // namespace farheap::tool
