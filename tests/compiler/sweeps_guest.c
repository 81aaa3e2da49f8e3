/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Compiled by farcc: sweeps of all kinds over more than its budget. Prints what it computed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { kRows = 1000, kColumns = 2600 };

__attribute__((noinline)) static void fill(double* a, long n) {
  for (long i = 0; i < n; ++i) a[i] = (double)(i % 1013);
}

__attribute__((noinline)) static void backward(double* a, long n) {
  for (long i = n - 1; i >= 0; --i) a[i] += 1;
}

__attribute__((noinline)) static void rows(double* a, const double* b, long n, long m) {
  for (long i = 1; i < n - 1; ++i) {
    for (long j = 1; j < m - 1; ++j) a[i * m + j] = (b[(i - 1) * m + j] + b[i * m + j - 1] + b[i * m + j + 1]) / 2;
  }
}

__attribute__((noinline)) static double columns(const double* a, long n, long m) {
  double sum = 0;
  for (long j = 0; j < m; j += 512) {
    for (long i = 0; i < n; ++i) sum += a[i * m + j];
  }
  return sum;
}

__attribute__((noinline)) static uint64_t looked_up(const double* a, const uint32_t* places, long n) {
  uint64_t sum = 0;
  for (long i = 0; i < n; ++i) sum = sum * 31 + (uint64_t)(a[places[i]] * 4);
  return sum;
}

int main(void) {
  const long n = (long)kRows * kColumns;
  double* a = malloc(n * sizeof *a);
  double* b = malloc(n * sizeof *b);
  uint32_t* places = malloc(n / 512 * sizeof *places);
  if (a == NULL || b == NULL || places == NULL) return 1;
  fill(a, n);
  fill(b, n);
  backward(b, n);
  rows(a, b, kRows, kColumns);
  for (long i = 0; i < n / 512; ++i) places[i] = (uint32_t)(i * 2654435761u % (unsigned long)n);
  printf("%.1f %llu\n", columns(a, kRows, kColumns), (unsigned long long)looked_up(a, places, n / 512));
  free(a);
  free(b);
  free(places);
  return 0;
}
