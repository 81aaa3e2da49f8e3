// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Thread-safety: any thread.
#pragma once

#include <farheap/result.hpp>
#include <string>

namespace farheap::tool {

// All bytes of a file that users may name. `what` and `remedy` are for the message.
[[nodiscard]] Result<std::string> whole_file(const std::string& path, const char* what, const char* remedy);

}  // namespace farheap::tool
