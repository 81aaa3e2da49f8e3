// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mimalloc as if it were linked in statically, which Debian has no library for: the executable defines the C library's
// names and calls mimalloc's.
#include <mimalloc.h>
#include <stddef.h>

#include "own_allocator.hpp"

#define IN_FRONT extern "C" __attribute__((visibility("default")))

IN_FRONT void* malloc(size_t bytes) { return mi_malloc(bytes); }
IN_FRONT void free(void* pointer) { mi_free(pointer); }
IN_FRONT void* calloc(size_t count, size_t bytes) { return mi_calloc(count, bytes); }
IN_FRONT void* realloc(void* pointer, size_t bytes) { return mi_realloc(pointer, bytes); }
IN_FRONT void* memalign(size_t alignment, size_t bytes) { return mi_memalign(alignment, bytes); }
IN_FRONT void* aligned_alloc(size_t alignment, size_t bytes) { return mi_aligned_alloc(alignment, bytes); }
IN_FRONT int posix_memalign(void** result, size_t alignment, size_t bytes) {
  return mi_posix_memalign(result, alignment, bytes);
}
IN_FRONT size_t malloc_usable_size(void* pointer) { return mi_usable_size(pointer); }

void own::of_the_program() {}
