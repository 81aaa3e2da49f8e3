// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the exported functions of these names do for the program. The exported ones only hand on, and nothing in here
// calls them: libraries for fast networks (UCX, Open MPI) overwrite their first bytes with a jump to functions of their
// own, which go on by syscall(). What this library itself wants of the kernel it asks for by own_calls.cpp.
//
// Thread-safety: any thread.
#pragma once

#include <stddef.h>
#include <sys/types.h>

namespace farheap::preload {

void* program_mmap(void* wish, size_t bytes, int protection, int flags, int file, off_t offset);
int program_munmap(void* at, size_t bytes);
void* program_mremap(void* old, size_t old_bytes, size_t bytes, int flags, void* fixed);
int program_mprotect(void* at, size_t bytes, int protection, int key);
int program_madvise(void* at, size_t bytes, int advice);
int program_mlock(const void* at, size_t bytes);
int program_mlock2(const void* at, size_t bytes, unsigned flags);
int program_mlockall(int flags);
// As the system call: where the break is now, which is not where it was wished for if that cannot be.
void* program_break(void* wish);
int program_close(int file);
int program_close_range(unsigned first, unsigned last, int flags);
int program_dup2(int from, int to);
int program_dup3(int from, int to, int flags);
[[noreturn]] void end_process(int status);

}  // namespace farheap::preload
