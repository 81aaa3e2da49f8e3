// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `farheap run` gives to the runtime of translated programs, which finds it by its name: that it is there says
// that the program's heap is paged, and it is how what was written gets to the store at once.
//
// Thread-safety: any thread; not for signal handlers.
#pragma once

#include <cstddef>

namespace farheap::base {

// What the program wrote before the call is in the store of its run. False where it is not: `why` then holds the
// message, ended by a zero.
// Requires: why_bytes > 0.
using FlushHook = bool(char* why, std::size_t why_bytes);
inline constexpr char kFlushHookName[] = "__farheap_flush_pages";

}  // namespace farheap::base
