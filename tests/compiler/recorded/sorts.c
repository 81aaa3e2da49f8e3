/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Conditions in loops, loops in conditions; objects that move. */
#include <stdio.h>
#include <stdlib.h>

static void insertion(int *a, int n) {
  for (int i = 1; i < n; i++) {
    const int x = a[i];
    int j = i;
    while (j > 0 && a[j - 1] > x) {
      a[j] = a[j - 1];
      j--;
    }
    a[j] = x;
  }
}

static void quick(int *a, int n) {
  if (n < 8) {
    insertion(a, n);
    return;
  }
  const int pivot = a[n / 2];
  int i = 0, j = n - 1;
  for (;;) {
    while (a[i] < pivot) i++;
    while (a[j] > pivot) j--;
    if (i >= j) break;
    const int kept = a[i];
    a[i++] = a[j];
    a[j--] = kept;
  }
  quick(a, i);
  quick(a + i, n - i);
}

int main(void) {
  int *a = NULL, n = 0, room = 0;
  for (unsigned x = 1; n < 500; x = x * 1103515245 + 12345) {
    if (n == room) a = realloc(a, sizeof *a * (room = room ? 2 * room : 4));
    a[n++] = (int)(x >> 16 & 1023);
  }
  quick(a, n);
  int bad = 0;
  for (int i = 1; i < n; i++) bad += a[i] < a[i - 1];
  printf("%d %d %d\n", bad, a[0], a[n - 1]);
  free(a);
  return 0;
}
