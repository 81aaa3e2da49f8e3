/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static void sweep(char* p, long n) {
  for (long i = 0; i < n; ++i) p[i] = (char)(i * 7);
}

__attribute__((noinline)) static long left_alone(const char* p, long n) {
  long sum = 0;
  for (long i = 0; i < n; ++i) sum += p[i];
  return sum;
}

/* No loop: a guard. */
__attribute__((noinline)) static int first(const char* p) { return *p; }

int main(void) {
  char* p = malloc(3000000);
  if (p == NULL) return 1;
  sweep(p, 3000000);
  printf("%ld\n", left_alone(p, 3000000) + first(p));
  free(p);
  return 0;
}
