/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The C interface: hints for programs that know they run on Farheap, and heaps that outlive their process.
 *
 * Under `farheap run` the hints reach the runtime that was loaded into the program; without it they do nothing and say
 * so, so that one binary serves both.
 *
 * Thread-safety: all calls may be made from any thread.
 */
#ifndef FARHEAP_FARHEAP_H_
#define FARHEAP_FARHEAP_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum farheap_hint_kind {
  FARHEAP_WILL_NEED = 1, /* bring it in soon, without waiting */
  FARHEAP_DONE_WITH = 2, /* may leave memory first; contents are kept; waits for what is just read or written of it */
  FARHEAP_STREAM = 3,    /* used once from low to high addresses: read ahead, evict behind */
  FARHEAP_KEEP = 4       /* evict only when nothing else is left */
} farheap_hint_kind;

/* Says how [address, address + bytes) will be used. Advice only: whatever is said, the contents stay right.
 * Returns 0 if it was taken, 1 if there is no runtime or the range is not paged, -1 for an unknown kind. */
int farheap_hint(const void* address, size_t bytes, farheap_hint_kind kind);

/* 1 if this process runs on Farheap and pages leave its memory, 0 if not (yet). */
int farheap_active(void);

/* ---- heaps (docs/heaps.md; farheap/heap.hpp says more of what each does)
 *
 * Calls that return int return 0 when it is done, and otherwise an error; those that return a pointer, NULL. What went
 * wrong is then in farheap_last_error(), in words. Numbers of the interface's version: FARHEAP_HEAP_INTERFACE. */
#define FARHEAP_HEAP_INTERFACE 1

typedef struct farheap_heap farheap_heap;

typedef enum farheap_open_how {
  FARHEAP_OPEN = 0,   /* there has to be one */
  FARHEAP_CREATE = 1, /* there must be none */
  FARHEAP_OPEN_OR_CREATE = 2,
  FARHEAP_READ_ONLY = 3 /* "URI" or "URI@SNAPSHOT" */
} farheap_open_how;

typedef enum farheap_error {
  FARHEAP_DONE = 0,
  FARHEAP_INVALID_ARGUMENT = 1,
  FARHEAP_NOT_FOUND = 2,
  FARHEAP_PERMISSION = 3,
  FARHEAP_UNAVAILABLE = 4,
  FARHEAP_NO_SPACE = 5,
  FARHEAP_CORRUPT = 6,
  FARHEAP_CONFLICT = 7,
  FARHEAP_UNKNOWN = 8,
  FARHEAP_IO = 9
} farheap_error;

/* Of this thread's last call that failed; "" if none has. Valid until the next one fails. */
const char* farheap_last_error(void);

/* memory: bytes that may be resident; 0: half of the machine's. Only the heap that is opened for writing keeps others
 * out. */
farheap_heap* farheap_heap_open(const char* uri, farheap_open_how how, uint64_t memory);
/* What was not committed is lost. NULL is fine. */
void farheap_heap_close(farheap_heap* heap);
/* Removes a heap that nobody has open, and its files. */
int farheap_heap_remove(const char* uri);

/* NULL when the capacity is used up. alignment: a power of two, or 0. */
void* farheap_heap_allocate(farheap_heap* heap, size_t bytes, size_t alignment);
void* farheap_heap_reallocate(farheap_heap* heap, void* object, size_t bytes);
void farheap_heap_deallocate(farheap_heap* heap, void* object);

/* An object of so many bytes with a name, zeroed; or the one that has the name already, if it has as many bytes. */
void* farheap_heap_named(farheap_heap* heap, const char* name, size_t bytes);
/* NULL if there is none, with FARHEAP_NOT_FOUND's message; bytes may be NULL. */
void* farheap_heap_find(farheap_heap* heap, const char* name, size_t* bytes);
int farheap_heap_destroy(farheap_heap* heap, const char* name);
/* Objects made from C++ have types of their own: they are visited, and not found. Ends when visit returns another
 * value than 0, and returns that. visit makes and destroys nothing. */
typedef int (*farheap_visit)(void* context, const char* name, void* object, size_t bytes);
int farheap_heap_for_each(farheap_heap* heap, farheap_visit visit, void* context);

int farheap_heap_commit(farheap_heap* heap);
int farheap_heap_snapshot(farheap_heap* heap, const char* name);
int farheap_heap_remove_snapshot(farheap_heap* heap, const char* name);

#ifdef __cplusplus
}
#endif

#endif /* FARHEAP_FARHEAP_H_ */
