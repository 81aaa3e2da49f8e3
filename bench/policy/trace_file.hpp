// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A recorded page trace (docs/formats.md) from a file. Thread-safety: a pure function.
#pragma once

#include "profile/page_trace.hpp"

namespace farheap::bench {

[[nodiscard]] Result<profile::PageTrace> read_trace_file(const char* path);

}  // namespace farheap::bench
