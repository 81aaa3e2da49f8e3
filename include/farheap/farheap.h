/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The C interface for programs that know they run on Farheap. Under `farheap run` these calls reach the runtime
 * that was loaded into the program; without it they do nothing and say so, so that one binary serves both.
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

#ifdef __cplusplus
}
#endif

#endif /* FARHEAP_FARHEAP_H_ */
