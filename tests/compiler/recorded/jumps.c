/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* setjmp() and longjmp() out of loops and of functions; loops that have two entries. */
#include <setjmp.h>
#include <stdio.h>

static jmp_buf back;

static void climb(int depth) {
  for (int i = 0; i < 4; i++) {
    if (depth == 3 && i == 2) longjmp(back, depth + 1);
    if (depth < 3) climb(depth + 1);
  }
}

static int two_entries(int n) {
  int a = 0, i = n;
  if (n & 1) goto middle;
again:
  a += i;
middle:
  a ^= i;
  if (--i > 0) goto again;
  return a;
}

int main(void) {
  volatile int times = 0;
  const int came = setjmp(back);
  if (came != 0) times++;
  if (times < 5) climb(0);
  int sum = 0;
  for (int i = 1; i < 20; i++) sum += two_entries(i);
  printf("%d %d\n", times, sum);
  return 0;
}
