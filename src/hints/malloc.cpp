// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C library's allocation functions, as they are, with hints_now() told of large objects.
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>

#include "hints/next_malloc.hpp"
#include "preload/next_function.hpp"
#include "profile/recording.hpp"

#define FARHEAP_EXPORT extern "C" __attribute__((visibility("default")))

namespace farheap::hints {

using preload::Caller;
using preload::NextFunction;
using profile::kLargeObjectBytes;

static NextFunction<void*(size_t)> next_malloc("malloc"), next_valloc("valloc"), next_pvalloc("pvalloc");
static NextFunction<void(void*)> next_free("free");
static NextFunction<void*(size_t, size_t)> next_calloc("calloc"), next_memalign("memalign"),
    next_aligned_alloc("aligned_alloc");
static NextFunction<void*(void*, size_t)> next_realloc("realloc");
static NextFunction<void*(void*, size_t, size_t)> next_reallocarray("reallocarray");
static NextFunction<int(void**, size_t, size_t)> next_posix_memalign("posix_memalign");
static NextFunction<size_t(void*)> next_usable_size("malloc_usable_size");

__attribute__((constructor)) static void look_up_all() {
  preload::look_up(next_malloc, next_valloc, next_pvalloc, next_free, next_calloc, next_memalign, next_aligned_alloc,
                   next_realloc, next_reallocarray, next_posix_memalign, next_usable_size);
}

static inline void* observed(const Caller& caller, void* pointer, size_t bytes) {
  if (bytes < kLargeObjectBytes) [[likely]]
    return pointer;
  if (HintRun* const hints = hints_now()) hints->allocated(pointer, bytes, caller.address, caller.frame);
  return pointer;
}

// Only of large objects: what their size says is read by free() itself next.
static inline bool ends(void* pointer) {
  HintRun* const hints = hints_now();
  if (hints == nullptr || pointer == nullptr || next_usable_size(pointer) < kLargeObjectBytes) return false;
  hints->freed(pointer);
  return true;
}

// A mapping that cannot grow stays, and is taken for an object of this call.
template <class Function>
static void* reallocated(const Caller& caller, void* pointer, size_t bytes, Function again) {
  const bool was_large = ends(pointer);
  void* const moved = again();
  if (moved == nullptr && was_large && bytes != 0) {
    const int why = errno;
    observed(caller, pointer, next_usable_size(pointer));
    errno = why;
  }
  return observed(caller, moved, bytes);
}

static size_t product(size_t count, size_t bytes) {
  size_t total;
  return __builtin_mul_overflow(count, bytes, &total) ? 0 : total;
}

void* allocate_for(const Caller& caller, size_t bytes) { return observed(caller, next_malloc(bytes), bytes); }
void* allocate_aligned_for(const Caller& caller, size_t alignment, size_t bytes) {
  return observed(caller, next_memalign(alignment, bytes), bytes);
}

}  // namespace farheap::hints

using namespace farheap::hints;

FARHEAP_EXPORT void* malloc(size_t bytes) { return observed(FARHEAP_CALLER, next_malloc(bytes), bytes); }
FARHEAP_EXPORT void free(void* pointer) {
  const int before = errno;
  (void)ends(pointer);
  errno = before;
  next_free(pointer);
}
FARHEAP_EXPORT void* calloc(size_t count, size_t bytes) {
  return observed(FARHEAP_CALLER, next_calloc(count, bytes), product(count, bytes));
}
FARHEAP_EXPORT void* realloc(void* pointer, size_t bytes) {
  return reallocated(FARHEAP_CALLER, pointer, bytes, [=] { return next_realloc(pointer, bytes); });
}
FARHEAP_EXPORT void* reallocarray(void* pointer, size_t count, size_t bytes) {
  return reallocated(FARHEAP_CALLER, pointer, product(count, bytes),
                     [=] { return next_reallocarray(pointer, count, bytes); });
}
FARHEAP_EXPORT void* memalign(size_t alignment, size_t bytes) {
  return observed(FARHEAP_CALLER, next_memalign(alignment, bytes), bytes);
}
FARHEAP_EXPORT void* aligned_alloc(size_t alignment, size_t bytes) {
  return observed(FARHEAP_CALLER, next_aligned_alloc(alignment, bytes), bytes);
}
FARHEAP_EXPORT int posix_memalign(void** result, size_t alignment, size_t bytes) {
  const int failed = next_posix_memalign(result, alignment, bytes);
  if (failed == 0) observed(FARHEAP_CALLER, *result, bytes);
  return failed;
}
FARHEAP_EXPORT void* valloc(size_t bytes) { return observed(FARHEAP_CALLER, next_valloc(bytes), bytes); }
FARHEAP_EXPORT void* pvalloc(size_t bytes) { return observed(FARHEAP_CALLER, next_pvalloc(bytes), bytes); }
