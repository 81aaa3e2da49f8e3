// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file that somebody names, read whole: nothing that blocks (a FIFO, a terminal), never ends (a device) or is larger
// than it can be.
//
// Thread-safety: any thread.
#pragma once

#include <cstddef>
#include <farheap/result.hpp>
#include <string>

namespace farheap::os {

// `what` and `remedy` are for messages. kUnavailable for what is no regular file, kCorrupt for one of more than
// `most_bytes`.
[[nodiscard]] Result<std::string> read_regular_file(const std::string& path, std::size_t most_bytes, const char* what,
                                                    const char* remedy);

}  // namespace farheap::os
