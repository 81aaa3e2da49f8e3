/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Linked by `farcc -ffar=count -ffar-count=executed` to a program or shared library: prints when it ends what its
 * functions have executed, to $FARCC_COUNTS or standard error. compiler/passes/count.cpp makes the records.
 *
 * Thread-safety: threads that still run add to the records while they are printed; what they add is lost. */
#define _GNU_SOURCE /* secure_getenv() */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "append_file.h"

struct farheap_counted {
  const char* name;
  uint64_t calls, instructions, loads, stores;
};

/* The linker puts these around the section of that name. Weak: it may be that nothing was compiled to count.
 * NOLINTBEGIN(bugprone-reserved-identifier): the names are the linker's. */
extern struct farheap_counted __start_farheap_counts[] __attribute__((weak, visibility("hidden")));
extern struct farheap_counted __stop_farheap_counts[] __attribute__((weak, visibility("hidden")));
/* NOLINTEND(bugprone-reserved-identifier) */

static void print(int to, const struct farheap_counted* counted) {
  dprintf(to, "farheap counted %s: %llu calls, %llu instructions, %llu loads, %llu stores\n", counted->name,
          (unsigned long long)counted->calls, (unsigned long long)counted->instructions,
          (unsigned long long)counted->loads, (unsigned long long)counted->stores);
}

__attribute__((destructor)) static void print_all(void) {
  struct farheap_counted sum = {"(all)", 0, 0, 0, 0};
  const char* name = secure_getenv("FARCC_COUNTS");
  int to = STDERR_FILENO;
  if (name != NULL && *name != '\0') {
    to = farheap_open_to_append(name);
    if (to < 0) {
      perror("farheap: the counts are below: cannot write them to the file of FARCC_COUNTS");
      to = STDERR_FILENO;
    }
  }
  for (const struct farheap_counted* at = __start_farheap_counts; at != __stop_farheap_counts; ++at) {
    if (at->calls == 0) continue;
    print(to, at);
    sum.calls += at->calls;
    sum.instructions += at->instructions;
    sum.loads += at->loads;
    sum.stores += at->stores;
  }
  print(to, &sum);
  if (to != STDERR_FILENO) close(to);
}
