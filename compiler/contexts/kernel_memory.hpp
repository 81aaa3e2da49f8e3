// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory that comes from the kernel: the program's allocator may be the one that asks.
//
// Thread-safety: any thread, and signal handlers.
#pragma once

#include <atomic>
#include <cstddef>

namespace farheap::contexts {

inline constexpr std::size_t kPageBytes = 4096;

// Zeroed; nullptr if there is none.
[[nodiscard]] void* take_from_kernel(std::size_t bytes);
void give_to_kernel(void* memory, std::size_t bytes);
// Whole pages: zeros again, and no memory until they are touched.
void empty_pages(void* at, std::size_t bytes);

// Held for a moment, or by a thread that does not wait for the program.
class SpinLock {
 public:
  void lock();
  void unlock() { is_taken_.clear(std::memory_order_release); }

 private:
  std::atomic_flag is_taken_ = ATOMIC_FLAG_INIT;
};

}  // namespace farheap::contexts
