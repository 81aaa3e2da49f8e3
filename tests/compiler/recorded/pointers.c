/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Calls by pointers, also by a function of the C library. */
#include <stdio.h>
#include <stdlib.h>

static int up(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static int down(const void *a, const void *b) { return up(b, a); }
static int twice(int x) { return 2 * x; }
static int square(int x) { return x * x; }

int main(void) {
  static int (*const maps[])(int) = {twice, square};
  int values[60];
  for (int i = 0; i < 60; i++) values[i] = maps[i % 2](i);
  qsort(values, 60, sizeof values[0], up);
  int sum = values[7];
  qsort(values, 60, sizeof values[0], down);
  printf("%d\n", sum + values[11]);
  return 0;
}
