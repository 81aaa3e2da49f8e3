/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Recursion, direct and through another function. */
#include <stdio.h>

static int is_odd(int n);
static int is_even(int n) { return n == 0 ? 1 : is_odd(n - 1); }
static int is_odd(int n) { return n == 0 ? 0 : is_even(n - 1); }
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

int main(void) {
  printf("%d %d %d\n", fib(16), is_even(401), ackermann(2, 6));
  return 0;
}
