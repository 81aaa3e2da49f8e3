// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether a plan can be followed by a run.
//
// Thread-safety: any thread.
#pragma once

#include <farheap/result.hpp>
#include <string>

namespace farheap::tool {

// kInvalidArgument where it was made with another build of a program or library that is still there; else as
// plan::read_plan().
[[nodiscard]] Status check_plan(const std::string& path);

}  // namespace farheap::tool
