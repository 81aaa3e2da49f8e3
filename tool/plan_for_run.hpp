// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether a plan can be followed by a run.
//
// Thread-safety: any thread.
#pragma once

#include <farheap/result.hpp>
#include <string>

#include "plan/plan.hpp"

namespace farheap::tool {

// kInvalidArgument where it was made with another build of a program or library that is still there; else as
// plan::read_plan().
[[nodiscard]] Status check_plan(const std::string& path);
// The former of that alone. `path` is for messages.
[[nodiscard]] Status check_build(const plan::Plan& plan, const std::string& path);

}  // namespace farheap::tool
