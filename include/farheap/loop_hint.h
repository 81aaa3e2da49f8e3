/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What programs compiled by farcc call before a loop (docs/compiler.md). A compiler of one's own, or a program, may do
 * the same:
 *
 *   if (&__farheap_loop != NULL && bytes >= 1 << 20) __farheap_loop(begin, bytes, stride, FARHEAP_LOOP_READS);
 *
 * What else it knows (what to keep, what is done with, an order) it says by the calls of farheap.h, which may be weak,
 * too (FARHEAP_WEAK_HINTS). All of them come to the pager by one door.
 *
 * The function is there under `farheap run`, and in a program that opens heaps (farheap/heap.hpp), for those.
 *
 * Thread-safety: any thread, at any time, in a signal handler too. */
#ifndef FARHEAP_LOOP_HINT_H_
#define FARHEAP_LOOP_HINT_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  FARHEAP_LOOP_READS = 1,
  FARHEAP_LOOP_WRITES = 2,
  FARHEAP_LOOP_BACKWARD = 4 /* from the end to the begin */
};

/* A loop is about to touch [begin, begin + bytes), each turn `stride` bytes from the one before; 0: it differs. Advice
 * only: any range may be said, also one that is no memory; it is looked at, and never touched. Does not wait for what
 * it asks for. */
/* Reserved names are for what compilers call. NOLINTNEXTLINE(bugprone-reserved-identifier) */
__attribute__((weak)) void __farheap_loop(const void* begin, size_t bytes, ptrdiff_t stride, unsigned flags);

#ifdef __cplusplus
}
#endif

#endif /* FARHEAP_LOOP_HINT_H_ */
