// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What one thread keeps at hand of one heap: for each size class an array of pointers to free slots. The slots
// themselves are never touched. In the books of the bins they count as used: a later commit that wants to know
// from the bitmaps what is allocated has to subtract them.
//
// In a kept segment a cut may be made between any two instructions of the thread. What is in the cut is a prefix of
// the thread's stores, as the processor (x86) keeps their order and the compiler is told to: a slot is out of the
// cache before the program writes to it or stores where it is, and in the cache after all that. So in any cut a slot
// is at most in one place; in none, if its object was just coming or going.
//
// Thread-safety: its own thread only; counts may be read by others (statistics).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "heap/size_classes.hpp"

namespace farheap::heap {

class Heap;

inline constexpr std::uint32_t kFirstCacheSlots = 4;

struct CacheBin {
  std::atomic<std::uint32_t> count{0};
  std::uint32_t capacity = 0;  // grows with use, up to SizeClass::cache_slots
  bool used = false;           // refilled or flushed since the last look
  void** slots = nullptr;

  [[nodiscard]] void* pop() {
    std::uint32_t left = count.load(std::memory_order_relaxed);
    if (left == 0) return nullptr;
    count.store(left - 1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_release);  // before what the caller does with the slot
    return slots[left - 1];
  }
  [[nodiscard]] bool push(void* slot) {
    std::uint32_t have = count.load(std::memory_order_relaxed);
    if (have == capacity) return false;
    slots[have] = slot;
    count.store(have + 1, std::memory_order_release);  // after the slot, and what the caller did before
    return true;
  }
};

struct ThreadCache {
  Heap* heap = nullptr;
  ThreadCache* next = nullptr;  // in the heap's list of living or of spare caches
  ThreadCache* previous = nullptr;
  unsigned arena = 0;
  unsigned slow_calls = 0;
  unsigned next_look = 1;  // the class whose idleness is looked at next
  CacheBin bins[kClassCount];
};

}  // namespace farheap::heap
