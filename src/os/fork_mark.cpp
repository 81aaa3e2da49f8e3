// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/fork_mark.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <new>

namespace farheap::os {

namespace {
constexpr std::size_t kBytes = 4096;
}

// The system calls: inside a program that runs on Farheap, mmap() is Farheap's own.
ForkMark::ForkMark() {
  const long at = syscall(SYS_mmap, nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
  if (at == -1 || syscall(SYS_madvise, at, kBytes, MADV_WIPEONFORK) != 0) throw std::bad_alloc();
  mark_ = new (reinterpret_cast<void*>(at)) std::atomic<char>(1);
}

ForkMark::~ForkMark() { syscall(SYS_munmap, mark_, kBytes); }

}  // namespace farheap::os
