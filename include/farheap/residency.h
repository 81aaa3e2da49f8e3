/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What programs compiled by `farcc -ffar=guard` and the runtime tell each other (docs/compiler.md). Before an access
 * that may miss, such a program looks whether the page is away, and if so has it brought by the thread that needs it:
 *
 *   offset = address - view.begin;
 *   if (offset < view.bytes && view.away[offset >> 12] != 0) __farheap_fetch(address, write);
 *
 * It is advice. A page may go between the look and the access, and what is not looked at faults as ever: no result of
 * the program may depend on a view.
 *
 * The functions are there under `farheap run`, and nowhere else.
 *
 * Thread-safety: __farheap_fetch may be called by any thread, at any time, in a signal handler too. The other two are
 * called when a module is loaded or unloaded, before and after all of its other code. */
#ifndef FARHEAP_RESIDENCY_H_
#define FARHEAP_RESIDENCY_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A module's (a program's or a shared library's) view of what is away. It begins as {1 << 63, 0, NULL}: no address of a
 * program is in it, before the runtime is up and where there is none. The runtime writes `away`, then `begin`, then
 * `bytes`, each whole and the last with release order; a reader takes `begin` and `bytes`, the latter with acquire
 * order, before `away`. So whichever of the old and new values it finds, it looks only at bytes that are there. */
struct farheap_residency {
  uintptr_t begin;           /* a multiple of 4096 */
  uintptr_t bytes;           /* a multiple of 4096 */
  const unsigned char* away; /* one for each 4096 bytes, 0: in view. There as long as the process: readers keep it. */
};

/* Reserved names are for what compilers call. NOLINTBEGIN(bugprone-reserved-identifier) */

/* Here is a view. The runtime fills it, at once or when paging begins. May be said twice of one view. */
__attribute__((weak)) void __farheap_residency(struct farheap_residency* view);

/* The view is about to be unmapped, as by dlclose(): the runtime no longer writes to it. It is still read, as it is,
 * by code of the module that runs yet. May be said of a view that the runtime never heard of. */
__attribute__((weak)) void __farheap_residency_gone(struct farheap_residency* view);

/* Brings the page of `address` into view, in the calling thread; `write`: not 0 if it will be written. May do nothing.
 * Any address may be said: it is looked at, and touched only if it is a far one. Changes nothing that the program can
 * see, errno included. Vector registers need not be kept: the caller sees to that. */
__attribute__((weak)) void __farheap_fetch(const void* address, unsigned write);

/* NOLINTEND(bugprone-reserved-identifier) */

#ifdef __cplusplus
}
#endif

#endif /* FARHEAP_RESIDENCY_H_ */
