/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Switches, do-while, and a goto out of two loops. */
#include <stdio.h>
#include <stdlib.h>

enum { PUSH, ADD, MULTIPLY, REPEAT, END };

static long run(const unsigned char *code, long *stack) {
  long top = -1, turns = 0, at = 0;
  do {
    switch (code[at++]) {
      case PUSH: stack[++top] = code[at++]; break;
      case ADD: top--, stack[top] += stack[top + 1]; break;
      case MULTIPLY: top--, stack[top] = stack[top] * stack[top + 1] % 1009; break;
      case REPEAT:
        if (++turns < code[at++]) at = 2;
        break;
      default: return stack[top];
    }
  } while (1);
}

static int search(const long *grid, int n, long wanted) {
  int i, j = 0;
  for (i = 0; i < n; i++) {
    for (j = 0; j < n; j++) {
      if (grid[i * n + j] == wanted) goto found;
    }
  }
  return -1;
found:
  return i * n + j;
}

int main(void) {
  static const unsigned char code[] = {PUSH, 1, PUSH, 7, MULTIPLY, PUSH, 3, ADD, REPEAT, 90, END};
  long *stack = malloc(sizeof *stack * 16), *grid = malloc(sizeof *grid * 100);
  for (int i = 0; i < 100; i++) grid[i] = i * i % 101;
  long sum = run(code, stack);
  for (int i = 0; i < 30; i++) sum += search(grid, 10, i);
  printf("%ld\n", sum);
  free(stack), free(grid);
  return 0;
}
