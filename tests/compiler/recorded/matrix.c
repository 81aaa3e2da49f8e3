/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Nested loops over the heap. */
#include <stdio.h>
#include <stdlib.h>

static double *make(int n, double by) {
  double *a = malloc(sizeof *a * n * n);
  for (int i = 0; i < n * n; i++) a[i] = i % 7 * by;
  return a;
}

static void multiply(double *c, const double *a, const double *b, int n) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
      c[i * n + j] = sum;
    }
  }
}

int main(void) {
  const int n = 23;
  double *a = make(n, 0.5), *b = make(n, 0.25), *c = make(n, 0);
  multiply(c, a, b, n);
  printf("%.3f\n", c[n + 3]);
  free(a), free(b), free(c);
  return 0;
}
