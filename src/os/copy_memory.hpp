// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads memory of this process as a debugger would: what the program has shut (PROT_NONE) as well, and without a signal
// where nothing is.
//
// Thread-safety: any thread; allocates nothing.
#pragma once

#include <cstddef>

namespace farheap::os {

// False, and nothing is known of what is in `into`, where something is not mapped or the kernel forbids it.
[[nodiscard]] bool copy_memory(std::byte* into, const std::byte* from, std::size_t bytes);

}  // namespace farheap::os
