// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Thread-safety: any thread.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace farheap::os {

// Anonymous memory reads as zeros afterwards, also where mlockall() has locked it. False where it cannot be dropped:
// before Linux 5.18, what is locked. By the system call itself: inside a program that runs on Farheap, madvise() is
// Farheap's own.
[[nodiscard]] inline bool drop_though_locked(std::byte* at, std::size_t bytes) {
  constexpr int kDontNeedLocked = 24;  // MADV_DONTNEED_LOCKED, Linux 5.18
  return syscall(SYS_madvise, at, bytes, MADV_DONTNEED) == 0 || syscall(SYS_madvise, at, bytes, kDontNeedLocked) == 0;
}

}  // namespace farheap::os
