// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernel_memory.hpp"

#include <sched.h>
#include <sys/mman.h>

namespace farheap::contexts {

// The C library's names, which allocate.cpp has as well: who is inside the runtime gets the kernel's memory there.
void* take_from_kernel(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void give_to_kernel(void* memory, std::size_t bytes) { munmap(memory, bytes); }

// The kernel does not drop locked memory (mlockall()) this way.
void empty_pages(void* at, std::size_t bytes) {
  if (madvise(at, bytes, MADV_DONTNEED) == 0) return;
  auto* const words = static_cast<volatile std::size_t*>(at);
  for (std::size_t i = 0; i < bytes / sizeof(std::size_t); ++i) words[i] = 0;
}

void SpinLock::lock() {
  while (is_taken_.test_and_set(std::memory_order_acquire)) sched_yield();
}

}  // namespace farheap::contexts
