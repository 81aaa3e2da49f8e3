/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Seed 000, appendix A: a matrix on the stack and one in the heap are filled and checked. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { kRows = 10, kColumns = 10 };

static char* heap_matrix;

__attribute__((noinline)) static void stack_allocation(char matrix[][kColumns]) {
  for (int i = 0; i < kRows; i++) {
    for (int j = 0; j < kColumns; j++) matrix[i][j] = (char)((i * kColumns + j) % 128);
  }
}

__attribute__((noinline)) static void heap_allocation(void) {
  for (int i = 0; i < kRows; i++) {
    for (int j = 0; j < kColumns; j++) *(heap_matrix + i * kColumns + j) = (char)((i * kColumns + j) % 128);
  }
}

static bool is_right(char* matrix) {
  bool correct = true;
  for (int i = 0; i < kRows; i++) {
    for (int j = 0; j < kColumns; j++) {
      if (*(matrix + i * kColumns + j) != (i * kColumns + j) % 128) correct = false;
    }
  }
  return correct;
}

int main(void) {
  char matrix[kRows][kColumns];
  stack_allocation(matrix);
  printf("stack: %d\n", is_right(&matrix[0][0]));
  heap_matrix = malloc(kRows * kColumns);
  heap_allocation();
  printf("heap: %d\n", is_right(heap_matrix));
  heap_matrix[42] = 0;
  printf("heap, changed: %d\n", is_right(heap_matrix));
  free(heap_matrix);
  return 0;
}
