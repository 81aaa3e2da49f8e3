// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file that a user asked for, written in one go.
//
// Thread-safety: any thread.
#pragma once

#include <farheap/result.hpp>
#include <string>
#include <string_view>

namespace farheap::tool {

// As os::open_output_file(): nothing of somebody else's is overwritten. `what` fails, for messages.
[[nodiscard]] Status write_output(const std::string& path, std::string_view text, const char* what);

}  // namespace farheap::tool
