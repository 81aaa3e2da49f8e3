// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linking what was compiled before: where it fails, the objects may have been compiled in a way that the link was not
// told of, which no linker can say.
//
// Thread-safety: functions of their arguments and the file system.
#pragma once

#include <string>
#include <vector>

#include "command_line.hpp"

namespace farheap::compiler {

// Whether one of the files was not compiled by this very command.
[[nodiscard]] bool links_objects(const CommandLine& line);

// Runs the command, as becoming it would; what it fails with is farcc's, after a sentence where one helps. The words
// for clang are `words`. Returns the status.
[[nodiscard]] int link(const CommandLine& line, const std::vector<std::string>& words);

}  // namespace farheap::compiler
