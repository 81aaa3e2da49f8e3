/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A malloc() that a program brings along, as jemalloc is linked in: the C library calls it, too. It holds one lock over
 * all that it does, mmap() included, so what mmap() calls must not allocate by the C library: the thread would wait for
 * itself.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { kChunk = 1 << 20, kLarge = 1 << 17, kPage = 4096, kUnit = 16 };

/* Before each object; the object's own size. */
typedef struct {
  size_t bytes;
  size_t unused;
} Head;

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static char* g_free;
static size_t g_left;

__attribute__((noinline)) static void* map(size_t bytes) {
  void* const at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? NULL : at;
}

/* Small objects are never used again. */
static char* take(size_t bytes) {
  if (bytes >= kLarge) return map(bytes);
  if (bytes > g_left) {
    g_free = map(kChunk);
    g_left = g_free != NULL ? kChunk : 0;
    if (g_free == NULL) return NULL;
  }
  char* const at = g_free;
  g_free += bytes;
  g_left -= bytes;
  return at;
}

static void* aligned(size_t alignment, size_t bytes) {
  if (bytes > PTRDIFF_MAX / 2 || alignment > PTRDIFF_MAX / 2) {
    errno = ENOMEM;
    return NULL;
  }
  const size_t whole = (sizeof(Head) + alignment + bytes + kUnit - 1) / kUnit * kUnit;
  pthread_mutex_lock(&g_lock);
  char* const at = take(whole);
  pthread_mutex_unlock(&g_lock);
  if (at == NULL) return NULL;
  char* const object = (char*)(((uintptr_t)at + sizeof(Head) + alignment - 1) / alignment * alignment);
  ((Head*)object)[-1].bytes = bytes;
  return object;
}

/* The C library is to find them. */
#pragma GCC visibility push(default)
void* malloc(size_t bytes) { return aligned(kUnit, bytes); }
void free(void* object) { (void)object; }
void* calloc(size_t count, size_t bytes) {
  if (bytes != 0 && count > PTRDIFF_MAX / bytes) {
    errno = ENOMEM;
    return NULL;
  }
  return malloc(count * bytes); /* fresh from the kernel: zeros */
}
void* realloc(void* object, size_t bytes) {
  void* const fresh = malloc(bytes);
  if (object == NULL || fresh == NULL) return fresh;
  const size_t before = ((Head*)object)[-1].bytes;
  memcpy(fresh, object, before < bytes ? before : bytes);
  return fresh;
}
void* memalign(size_t alignment, size_t bytes) { return aligned(alignment < kUnit ? kUnit : alignment, bytes); }
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
void* valloc(size_t bytes) { return memalign(kPage, bytes); }
void* pvalloc(size_t bytes) { return memalign(kPage, (bytes + kPage - 1) / kPage * kPage); }
int posix_memalign(void** object, size_t alignment, size_t bytes) {
  *object = memalign(alignment, bytes);
  return *object != NULL ? 0 : ENOMEM;
}
size_t malloc_usable_size(void* object) { return object != NULL ? ((Head*)object)[-1].bytes : 0; }
#pragma GCC visibility pop
