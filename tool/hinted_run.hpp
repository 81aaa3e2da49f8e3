// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap run --hints=kernel: a program on the kernel's own memory and swap, with the hints of seeds 001 and 004. It is
// what Farheap's plans are measured against (bench/plan).
//
// Thread-safety: the tool has one thread.
#pragma once

#include <farheap/result.hpp>
#include <string>

#include "base/options.hpp"
#include "verbs.hpp"

namespace farheap::tool {

// Whether these arguments go together.
[[nodiscard]] Status check_hints(const RunArguments& arguments);

// The exit status, as of run(). Requires: check_hints(), and arguments.hints is not empty.
[[nodiscard]] int run_hinted(const std::string& path, const RunArguments& arguments, base::Options& options);

}  // namespace farheap::tool
