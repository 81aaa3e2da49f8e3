// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the runs on this machine that this user may look at. There is no list of them that could grow stale: a run is a
// process that holds a run page open (a memfd with its name, in /proc/PID/fd).
//
// Thread-safety: the tool has one thread.
#pragma once

#include <sys/types.h>

#include <farheap/result.hpp>
#include <memory>
#include <vector>

#include "base/run_page.hpp"

namespace farheap::tool {

struct FoundRun {
  pid_t tool = 0;         // the `farheap run` process
  ino_t page_number = 0;  // tells runs apart
  std::unique_ptr<base::RunView> view;
  [[nodiscard]] std::string command() const;
  // Its own number, or that of one of its processes.
  [[nodiscard]] bool has(pid_t process) const;
};

// One that cannot be read: of another version, or in a container, where processes have other numbers.
struct UnreadableRun {
  pid_t tool = 0;
  Error error;
};

struct FoundRuns {
  std::vector<FoundRun> runs;  // in the order of their numbers
  std::vector<UnreadableRun> unreadable;
};
[[nodiscard]] FoundRuns find_runs();

}  // namespace farheap::tool
