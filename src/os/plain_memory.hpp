// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the kernel has mapped where, as far as moving it needs to know.
//
// Thread-safety: any thread; allocates nothing.
#pragma once

#include <cstddef>

namespace farheap::os {

// Private anonymous memory, and no stack or program break: what a copy can replace.
enum class PlainMemory {
  kNo,
  kOpen,  // may be read and written
  kShut,  // PROT_NONE
};

// What all of [at, at + bytes) is, by /proc/self/maps; kNo if its parts differ, or without /proc. About 100 us.
[[nodiscard]] PlainMemory plain_memory(const void* at, std::size_t bytes);

}  // namespace farheap::os
