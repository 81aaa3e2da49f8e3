// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which cache a thread has of which heap. Each heap of the process has a number. A thread keeps a binding for each
// number; that of a heap that it has not used is empty. The first heaps have a place of their own in thread-local
// storage, where the allocator's fast path looks. All others share some more places there: each holds a copy of the
// binding that was used last. So a thread that works with one heap for a while is as fast there as in the first ones,
// and looks its binding up when it goes over to another one.
//
// Thread-safety: any thread; a binding is its thread's own.
#pragma once

#include <cstdint>

namespace farheap::heap {

struct ThreadCache;

struct ThreadBinding {
  std::uint64_t heap_id = 0;  // no heap, a heap that is gone, or the heap whose cache this is
  ThreadCache* cache = nullptr;
  std::uint64_t ended_heap_id = 0;  // this thread ended for that heap: no new cache
};
inline constexpr int kOwnPlaces = 4, kSharedPlaces = 4;

// initial-exec and without a constructor: reading it never calls the loader, which might call malloc.
extern thread_local constinit ThreadBinding t_bindings[kOwnPlaces + kSharedPlaces]
    __attribute__((tls_model("initial-exec")));

// Heaps beyond have no thread caches.
inline constexpr int kMostNumbers = 1024;

[[nodiscard]] constexpr int place_of(int number) {
  return number < kOwnPlaces ? number : kOwnPlaces + number % kSharedPlaces;
}

// A number for a heap; ids are never used twice. -1: all are taken. Never calls malloc.
[[nodiscard]] int claim_number(std::uint64_t heap_id) noexcept;
// Afterwards no thread that ends looks at that heap: the call waits for those that do.
void release_number(int number) noexcept;
// In a forked child. No other thread is about to end there.
void forget_ending_threads(int number) noexcept;
// The child does not have that heap at all.
void forget_heap_in_child(int number) noexcept;

// This thread's binding for the heap of that number; nullptr if it has none yet.
[[nodiscard]] ThreadBinding* find_binding(int number) noexcept;
// The same, made if need be; nullptr if there is no memory, or the thread is about to end. Never calls malloc.
[[nodiscard]] ThreadBinding* make_binding(int number) noexcept;
// The binding has a cache now, which is to be given back when the thread ends. May call malloc.
void note_thread_has_caches() noexcept;

}  // namespace farheap::heap
