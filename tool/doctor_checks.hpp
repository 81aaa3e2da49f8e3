// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The checks of `farheap doctor`: what a machine allows, why it matters, and the command that mends it.
//
// Thread-safety: the tool has one thread.
#pragma once

#include <string>
#include <vector>

#include "base/options.hpp"

namespace farheap::tool {

enum class CheckState {
  kOk,
  kWarn,     // works, not at its best
  kMissing,  // `farheap run` cannot work
};

struct Check {
  std::string name;
  CheckState state = CheckState::kOk;
  std::string found;              // what is there
  std::string why;                // why it matters
  std::vector<std::string> mend;  // the commands; empty when all is well or nothing can be done
};

[[nodiscard]] std::vector<Check> check_machine(const base::Options& options);

}  // namespace farheap::tool
