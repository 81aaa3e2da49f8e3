/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The C interface: hints for programs that know they run on Farheap, and heaps that outlive their process.
 *
 * Hints reach the heap in which they begin, if this process has opened it, and else, under `farheap run`, the runtime
 * that was loaded into the program. Where there is neither they do nothing and say so, so that one binary serves all.
 *
 * What is not linked with libfarheap, as code that a compiler makes, may say the same: with FARHEAP_WEAK_HINTS defined
 * before this header is included, the calls for hints are weak, and NULL where there is no runtime:
 *
 *   if (&farheap_hint != NULL) farheap_hint(rows, bytes, FARHEAP_KEEP);
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

#ifdef FARHEAP_WEAK_HINTS
#define FARHEAP_HINT_CALL __attribute__((weak))
#else
#define FARHEAP_HINT_CALL
#endif

typedef enum farheap_hint_kind {
  FARHEAP_WILL_NEED = 1, /* bring it in soon, without waiting; what was said first comes first. Three quarters of the
                            memory are asked for at a time, and what is more than that left out */
  FARHEAP_DONE_WITH = 2, /* may leave memory first; contents are kept, changed or not; waits for no reads and writes */
  FARHEAP_STREAM = 3,    /* used once from low to high addresses: read ahead, evict behind */
  FARHEAP_KEEP = 4,      /* whenever it is in memory, evict it only when nothing else is left. Holds until DONE_WITH,
                            STREAM or NORMAL is said of it, or its pages are given back: munmap(), MADV_DONTNEED, and
                            free() of what is large.
                            Said before pages leave memory it holds from then on.
                            What is kept has half of the memory at the most: what is said or comes beyond that is as
                            all else, and where there is less memory later, what was kept longest is first */
  FARHEAP_NORMAL = 5     /* as if STREAM, KEEP and DONE_WITH had never been said of it */
} farheap_hint_kind;

/* Says how [address, address + bytes) will be used. Advice only: whatever is said, the contents stay right.
 * What lies beyond the heap that `address` is in is left out.
 * Returns 0 if it was taken, 1 if `address` is in no heap, and there is no runtime or it is not of its memory, -1 for
 * an unknown kind. */
int farheap_hint(const void* address, size_t bytes, farheap_hint_kind kind) FARHEAP_HINT_CALL;

/* ---- an order: what a program knows of all that it is about to use
 *
 *   farheap_step steps[] = {{tile[3], bytes, FARHEAP_FORWARD}, {tile[0], bytes, FARHEAP_FORWARD}, ...};
 *   farheap_expect_order(steps, count, 0);              all of it, again and again
 *   farheap_expect_order(steps, count, FARHEAP_ONCE);   ... once
 *   farheap_expect_order(steps, count, 7);              steps 0 to 6 once, then those from 7 on again and again
 *   farheap_expect_order(NULL, 0, FARHEAP_ONCE);        no longer in any order that is known
 *
 * What is used next and not there comes in, from the first step on and a little ahead of its use, however much all of
 * it is. What leaves is what will be needed last. So it is also how to say WILL_NEED of more than that, and of
 * many ranges in turn. */

typedef enum farheap_way {
  FARHEAP_FORWARD = 0, /* from low to high addresses */
  FARHEAP_BACKWARD = 1
} farheap_way;

typedef struct farheap_step {
  const void* address;
  size_t bytes;
  int way; /* a farheap_way: as a number, any other is refused */
} farheap_step;

#define FARHEAP_ONCE ((size_t)-1)

/* From now on [address, address + bytes) of each step will be used, one step after the other, by all threads taken
 * together; from step `round` on again and again. Say it when the first step is about to begin. Advice only: whatever
 * is said, the contents stay right. The steps are copied, and may be changed afterwards.
 *
 * It is of the heap in which the first step begins; steps that begin elsewhere are left out, and so is what lies beyond
 * that heap. It replaces the order that was said of that heap before. A step of no bytes says only which heap is meant:
 * alone it ends that heap's order. No steps end the orders of all heaps. Under `farheap run` an order may be said
 * before pages leave memory: it holds from then on.
 *
 * While it holds it goes before the plan of `farheap run --plan`, which is followed again afterwards: when it was
 * ended, when a program that has been through it goes on with something else, or when it was given up. That happens to
 * an order that the program does not keep to; the next that is said is followed again. KEEP goes before any order. A
 * forked child has none until it says one.
 *
 * Takes about a microsecond for each 256 KiB of the order; waits for no reads and writes. Not for signal handlers.
 * Returns 0 if it was taken, 1 if the first step begins in no heap and there is no runtime (or, without steps, if there
 * is neither), -1 if it is no order: steps without an address of them, a way that is none, a round that begins behind
 * the last step, or more than 2^22 pieces of 256 KiB. */
int farheap_expect_order(const farheap_step* steps, size_t count, size_t round) FARHEAP_HINT_CALL;

/* 1 if this process runs on Farheap and pages leave its memory, 0 if not (yet). */
int farheap_active(void) FARHEAP_HINT_CALL;

/* ---- heaps that outlive their process (docs/heaps.md; farheap/heap.hpp says more of what each call does)
 *
 * Conventions:
 *  1. A heap is an opaque handle, farheap_heap*. All calls take it first; none takes NULL, but for
 *     farheap_heap_close().
 *  2. Calls that return int return 0 (FARHEAP_DONE) when it is done, and otherwise a farheap_error. Calls that return a
 *     pointer return NULL instead. A `visit` function ends its walk with another value than 0, which is returned then.
 *  3. What went wrong in this thread's last call that failed is in farheap_last_error_code() and, in words, in
 *     farheap_last_error(). A call that succeeds leaves both as they are. Running out of memory in
 *     farheap_heap_allocate() and farheap_heap_reallocate() is no such error: like malloc(), they only return NULL.
 *  4. Text is ended by a zero byte and in the caller's hands: it is copied. Text that is given to `visit` is valid
 *     until it returns.
 *  5. Objects are bytes: zeroed when they are made, at the same address in every run, aligned to 16 bytes if they have
 *     16 or more. Objects made from C++ have types of their own: they are visited, and neither found nor destroyed.
 *  6. Nothing is kept before farheap_heap_commit() or farheap_heap_snapshot() has returned 0.
 *  7. Sizes are in bytes, times in nanoseconds since 1970.
 *  8. Any thread may make any call at any time, but for farheap_heap_close(), which is the last one. What `visit` does
 *     not: construct, destroy or describe objects.
 *  9. Nothing is thrown, and no call ends the program but as docs/heaps.md says: when a page cannot be read any more.
 * 10. Structures grow at their end only. Those that the caller makes begin with their size, as the caller knows it. */
#define FARHEAP_HEAP_INTERFACE 1 /* of this part; a number for each change that old programs would notice */

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

/* Of this thread's last call that failed; "" and FARHEAP_DONE if none has. The text is valid until the next one fails.
 */
const char* farheap_last_error(void);
farheap_error farheap_last_error_code(void);

typedef struct farheap_options {
  size_t structure_bytes; /* sizeof(farheap_options) */
  uint64_t memory;        /* that may be resident, at least 16 MiB; 0: half of the machine's */
  uint64_t capacity;      /* of a new heap; it costs nothing until it is used. 0: the most there is */
  int64_t wait_ms;        /* how long to wait for a process that has it open; 0: a second; negative: not at all */
  unsigned mode;          /* of the files of a new heap, less the umask, as 0640; 0: 0600 */
} farheap_options;

/* options: NULL for what is usual. Only the heap that is opened for writing keeps other writers out. */
farheap_heap* farheap_heap_open_with(const char* uri, farheap_open_how how, const farheap_options* options);
/* The same with so much memory. */
farheap_heap* farheap_heap_open(const char* uri, farheap_open_how how, uint64_t memory);
/* What was not committed is lost. NULL is fine. */
void farheap_heap_close(farheap_heap* heap);

/* Of a heap that nobody has open: removes it and its files; goes back to its newest snapshot, or to that of
 * "URI@SNAPSHOT", and all that came after it is lost. */
int farheap_heap_remove(const char* uri);
int farheap_heap_roll_back(const char* uri);
/* Makes a heap at `to`, where none is, out of the newest commit of `from` with all snapshots, or out of "URI@SNAPSHOT"
 * alone. `from` may be in use meanwhile. */
int farheap_heap_copy(const char* from, const char* to);
/* Reads all books: FARHEAP_CORRUPT, with the first thing that is wrong in words. "URI" or "URI@SNAPSHOT". */
int farheap_heap_check(const char* uri);

/* ---- memory */

/* NULL when the capacity is used up. alignment: a power of two, or 0. */
void* farheap_heap_allocate(farheap_heap* heap, size_t bytes, size_t alignment);
/* As realloc(). */
void* farheap_heap_reallocate(farheap_heap* heap, void* object, size_t bytes);
/* NULL is fine. */
void farheap_heap_deallocate(farheap_heap* heap, void* object);
/* 1 if it lies in the heap's range, 0 if not. */
int farheap_heap_owns(farheap_heap* heap, const void* address);

/* ---- objects with names */

/* A new one. NULL with FARHEAP_CONFLICT if there is one of that name, with FARHEAP_NO_SPACE if the heap is full. */
void* farheap_heap_construct(farheap_heap* heap, const char* name, size_t bytes);
/* The same, or the one that has the name already, if it has as many bytes. */
void* farheap_heap_named(farheap_heap* heap, const char* name, size_t bytes);
/* NULL with FARHEAP_NOT_FOUND if there is none; bytes may be NULL. */
void* farheap_heap_find(farheap_heap* heap, const char* name, size_t* bytes);
int farheap_heap_destroy(farheap_heap* heap, const char* name);
/* A text beside an object, instead of the one before. */
int farheap_heap_describe(farheap_heap* heap, const void* object, const char* description);

typedef enum farheap_object_kind {
  FARHEAP_NAMED = 1,
  FARHEAP_UNIQUE = 2,   /* one of its type, known by the type */
  FARHEAP_ANONYMOUS = 3 /* known by its address */
} farheap_object_kind;

typedef struct farheap_object {
  const char* name;        /* "": anonymous; of a unique one, its type */
  const char* type;        /* as the C++ compiler names it */
  const char* description; /* "": none */
  void* address;
  uint64_t bytes;  /* of all elements */
  uint64_t length; /* how many elements */
  farheap_object_kind kind;
} farheap_object;

/* By age. */
typedef int (*farheap_visit)(void* context, const farheap_object* object);
int farheap_heap_for_each(farheap_heap* heap, farheap_visit visit, void* context);
/* Visits the one with that name, C's or C++'s. Looks at all objects: not for what has to be fast. */
int farheap_heap_attributes(farheap_heap* heap, const char* name, farheap_visit visit, void* context);

/* ---- versions */

/* On error the version before stands, the heap goes on in memory, and a later commit takes everything in. */
int farheap_heap_commit(farheap_heap* heap);
/* A commit, too, that is kept under a name: 1 to 95 bytes, no '@'. */
int farheap_heap_snapshot(farheap_heap* heap, const char* name);
int farheap_heap_remove_snapshot(farheap_heap* heap, const char* name);
/* A commit, after which pages that hold nothing have left the store. */
int farheap_heap_compact(farheap_heap* heap);

typedef struct farheap_version {
  const char* name; /* "": the newest commit */
  uint64_t commit;  /* counts all commits of the heap */
  uint64_t time_ns;
  uint64_t pages; /* that hold anything, of 4 KiB */
} farheap_version;

/* By age: the snapshots, then the newest commit. */
typedef int (*farheap_visit_version)(void* context, const farheap_version* version);
int farheap_heap_for_each_version(farheap_heap* heap, farheap_visit_version visit, void* context);

/* Between the two no commit cuts: a boundary around changes that belong together. NULL when there is no memory. The
 * thread that paused resumes, and in between it neither commits nor pauses again. */
typedef struct farheap_pause farheap_pause;
farheap_pause* farheap_heap_pause(farheap_heap* heap);
void farheap_heap_resume(farheap_pause* pause);

/* ---- facts */

typedef struct farheap_statistics {
  size_t structure_bytes;   /* sizeof(farheap_statistics): set before the call */
  uint64_t memory_bytes;    /* resident now */
  uint64_t allocated_bytes; /* in objects, rounding included; 0 for a heap that is only read */
  uint64_t segment_bytes;   /* of addresses handed out to the allocator */
  uint64_t capacity_bytes;
  uint64_t objects;                           /* with names or without, that were constructed and not destroyed */
  uint64_t faults, bytes_read, bytes_written; /* since it was opened */
} farheap_statistics;
int farheap_heap_statistics(farheap_heap* heap, farheap_statistics* statistics);

/* 32 hexadecimal digits and a zero byte: of this heap for ever. */
#define FARHEAP_ID_BYTES 33
int farheap_heap_id(farheap_heap* heap, char id[FARHEAP_ID_BYTES]);
/* 1 if it was opened to be read only. */
int farheap_heap_is_read_only(farheap_heap* heap);

#undef FARHEAP_HINT_CALL

#ifdef __cplusplus
}
#endif

#endif /* FARHEAP_FARHEAP_H_ */
