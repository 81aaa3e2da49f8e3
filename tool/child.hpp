// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Starts a program and waits for it as a shell would: signals sent to the tool reach the program, those that the
// terminal sends to both are left to the program, the tool stops and goes on when the program does, and a tool that is
// killed takes its program with it, and all that the program has started (guardian.hpp).
//
// Thread-safety: one child at a time. Other threads of the process must have all signals blocked.
#pragma once

#include <farheap/result.hpp>
#include <string>
#include <vector>

namespace farheap::tool {

struct ChildEnd {
  int exit_status = 0;  // as a shell reports it: 128 + signal when killed
  int signal = 0;       // the signal that ended it, or 0
};

// Runs command[0] at `path` with `environment` ("NAME=value") and waits for its end.
// `inherited`: descriptors that it gets under the same numbers.
// kNotFound or kPermission when the kernel does not execute it.
[[nodiscard]] Result<ChildEnd> run_child(const std::string& path, const std::vector<std::string>& command,
                                         const std::vector<std::string>& environment,
                                         const std::vector<int>& inherited);

// The status a shell gives a command that could not be started: 127 not found, 126 there but not executable.
[[nodiscard]] int shell_status(const Error& error);

}  // namespace farheap::tool
