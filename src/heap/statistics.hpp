// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a heap holds, counted while it runs: sums over bins that are looked at one after the other.
//
// Thread-safety: plain values.
#pragma once

#include <array>
#include <cstddef>

#include "heap/size_classes.hpp"

namespace farheap::heap {

struct ClassStatistics {
  std::size_t slot_bytes = 0;
  std::size_t live = 0;    // objects in the program's hands
  std::size_t cached = 0;  // slots in thread caches
  std::size_t slabs = 0;
  std::size_t slots = 0;  // in all slabs
};

struct Statistics {
  std::size_t live_bytes = 0;     // usable bytes in the program's hands
  std::size_t cached_bytes = 0;   // in thread caches
  std::size_t slab_bytes = 0;     // address space of all slabs
  std::size_t large_bytes = 0;    // objects above 32 KiB, part of live_bytes
  std::size_t waiting_bytes = 0;  // freed, but memory kept for the next need
  std::size_t thread_caches = 0;
  std::array<ClassStatistics, kClassCount> classes;
};

}  // namespace farheap::heap
