// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel's small text files (/proc, /sys, control groups): read whole, written in one call.
//
// Thread-safety: any thread.
#pragma once

#include <farheap/result.hpp>
#include <string>
#include <string_view>

namespace farheap::os {

// Never empty: a file without contents reads as "\n", so that callers may look at the first character.
[[nodiscard]] Result<std::string> read_small_file(const std::string& path);
[[nodiscard]] Status write_small_file(const std::string& path, std::string_view text);

}  // namespace farheap::os
