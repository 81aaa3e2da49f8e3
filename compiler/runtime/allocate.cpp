// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What allocates in translated code. Whatever the C library or code that was not translated has allocated stays local,
// and goes back to the C library.
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>

#include "far.hpp"

namespace farheap::translate {
namespace {

// nullptr and ENOMEM where the heap is full; a store that fails ends the program.
template <class Call>
void* allocated(const Call& call) {
  Result<void*> at = [&] {
    const Inside inside;
    return call(inside.heap());
  }();
  if (at) return *at;
  if (at.error().code != ErrorCode::kNoSpace) die(at.error());
  errno = ENOMEM;
  return nullptr;
}

void* aligned(std::size_t alignment, std::size_t bytes) {
  if (!start()) return ::aligned_alloc(alignment, bytes);
  return allocated([&](FarHeap& heap) { return heap.allocate_aligned(bytes, alignment); });
}

bool is_power_of_two(std::size_t value) { return value != 0 && (value & (value - 1)) == 0; }

template <class Call>
void* or_handler(const Call& call) {
  for (;;) {
    if (void* const at = call()) return at;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

}  // namespace
}  // namespace farheap::translate

using farheap::FarHeap;
using farheap::translate::aligned;
using farheap::translate::allocated;
using farheap::translate::is_far;
using farheap::translate::is_power_of_two;
using farheap::translate::or_handler;
using farheap::translate::start;

// NOLINTBEGIN(bugprone-reserved-identifier): names that no program has.
FARHEAP_ENTRY void* __farheap_malloc(std::size_t bytes) {
  if (!start()) return std::malloc(bytes);
  return allocated([&](FarHeap& heap) { return heap.allocate(bytes); });
}

FARHEAP_ENTRY void* __farheap_calloc(std::size_t count, std::size_t bytes) {
  if (!start()) return std::calloc(count, bytes);
  return allocated([&](FarHeap& heap) { return heap.allocate_zeroed(count, bytes); });
}

FARHEAP_ENTRY void __farheap_free(void* at) {
  if (!is_far(at)) {
    std::free(at);
    return;
  }
  if (!start()) return;  // it goes with the process
  const farheap::translate::Inside inside;
  const farheap::Status done = inside.heap().free(at);
  if (!done) farheap::translate::die(done.error());
}

FARHEAP_ENTRY void* __farheap_realloc(void* at, std::size_t bytes) {
  if (at == nullptr) return __farheap_malloc(bytes);
  if (!is_far(at)) return std::realloc(at, bytes);
  if (bytes == 0) {
    __farheap_free(at);
    return nullptr;
  }
  return allocated([&](FarHeap& heap) { return heap.reallocate(at, bytes); });
}

FARHEAP_ENTRY void* __farheap_reallocarray(void* at, std::size_t count, std::size_t bytes) {
  std::size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) {
    errno = ENOMEM;
    return nullptr;
  }
  return __farheap_realloc(at, all);
}

FARHEAP_ENTRY void* __farheap_aligned_alloc(std::size_t alignment, std::size_t bytes) {
  if (is_power_of_two(alignment)) return aligned(alignment, bytes);
  errno = EINVAL;
  return nullptr;
}

FARHEAP_ENTRY void* __farheap_valloc(std::size_t bytes) {
  return aligned(static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), bytes);
}

FARHEAP_ENTRY int __farheap_posix_memalign(void** into, std::size_t alignment, std::size_t bytes) {
  if (!is_power_of_two(alignment) || alignment < sizeof(void*)) return EINVAL;
  const int before = errno;
  void* const at = aligned(alignment, bytes);
  errno = before;
  if (at == nullptr) return ENOMEM;
  farheap::translate::store(into, at);
  return 0;
}

FARHEAP_ENTRY std::size_t __farheap_malloc_usable_size(void* at) {
  if (!is_far(at)) return ::malloc_usable_size(at);
  const farheap::translate::Inside inside;
  const auto bytes = inside.heap().bytes_from(at);
  if (!bytes) farheap::translate::die(bytes.error());
  return *bytes;
}

FARHEAP_ENTRY void* __farheap_new(std::size_t bytes) {
  return or_handler([&] { return __farheap_malloc(bytes); });
}
FARHEAP_ENTRY void* __farheap_new_aligned(std::size_t bytes, std::size_t alignment) {
  return or_handler([&] { return aligned(alignment, bytes); });
}
FARHEAP_ENTRY void* __farheap_new_nothrow(std::size_t bytes, const void*) noexcept {
  try {
    return __farheap_new(bytes);
  } catch (...) {  // a handler may throw what it likes
    return nullptr;
  }
}
FARHEAP_ENTRY void* __farheap_new_aligned_nothrow(std::size_t bytes, std::size_t alignment, const void*) noexcept {
  try {
    return __farheap_new_aligned(bytes, alignment);
  } catch (...) {
    return nullptr;
  }
}
FARHEAP_ENTRY void __farheap_delete(void* at) { __farheap_free(at); }
FARHEAP_ENTRY void __farheap_delete_sized(void* at, std::size_t) { __farheap_free(at); }
FARHEAP_ENTRY void __farheap_delete_nothrow(void* at, const void*) { __farheap_free(at); }
FARHEAP_ENTRY void __farheap_delete_sized_aligned(void* at, std::size_t, std::size_t) { __farheap_free(at); }
// NOLINTEND(bugprone-reserved-identifier)
