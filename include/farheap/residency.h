/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What programs compiled by `farcc -ffar=guard` look at before an access that may miss (docs/compiler.md). A compiler
 * of one's own may do the same:
 *
 *   uintptr_t offset = (uintptr_t)address - view.begin;
 *   if (offset < view.bytes && view.away[offset >> 12] != 0) __farheap_fetch(address, write);
 *
 * A guard is advice: the page may be gone again before it is touched, and comes by a fault then. The functions are
 * there under `farheap run`, and nowhere else. */
#ifndef FARHEAP_RESIDENCY_H_
#define FARHEAP_RESIDENCY_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One for each module (program or shared library), which begins as FARHEAP_RESIDENCY_NOTHING: then no address is in
 * it, in whatever order its members are read. The runtime fills it when paging begins, `bytes` last; then it stays.
 * Read `begin` and `bytes` before `away`. */
struct farheap_residency {
  uintptr_t begin;
  uintptr_t bytes;
  const unsigned char* away; /* for each page of 4096 bytes from `begin` on: not 0 if it is out of view */
};
#define FARHEAP_RESIDENCY_NOTHING {(uintptr_t)1 << 63, 0, 0}

/* NOLINTBEGIN(bugprone-reserved-identifier): reserved names are for what compilers call. */

/* A module says where its view is before it is used, and when it is about to be unloaded. Any thread. */
__attribute__((weak)) void __farheap_residency(struct farheap_residency* view);
__attribute__((weak)) void __farheap_residency_gone(struct farheap_residency* view);

/* Brings the page of `address` into view in the calling thread, if it is away, and waits for it. `write`: not 0 if it
 * will be written. Any address may be said; errno stays. Any thread, in a signal handler too. */
__attribute__((weak)) void __farheap_fetch(const void* address, unsigned write);

/* NOLINTEND(bugprone-reserved-identifier) */

#ifdef __cplusplus
}
#endif

#endif /* FARHEAP_RESIDENCY_H_ */
