/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Says whether its heap, and its global variables, are far. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct range {
  size_t begin, bytes;
};
/* The runtime's, where there is one. NOLINTNEXTLINE(bugprone-reserved-identifier) */
extern struct range __farheap_far __attribute__((weak));
long sum(const long* p, long n);

long values[11];

static int is_far(const void* p) {
  return &__farheap_far != NULL && (size_t)p - __farheap_far.begin < __farheap_far.bytes;
}

int main(void) {
  long* p = malloc(11 * sizeof *p);
  if (p == NULL) return 1;
  for (long i = 0; i < 11; ++i) p[i] = values[i] = i;
  printf("%d %d %ld\n", is_far(p), is_far(values), values[0] + sum(p, 11));
  free(p);
  return 0;
}
