// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// OpenMP: loops of all schedules, reductions, collapse, simd, sections. Its argument: MiB of arrays.
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static long count;

static void fill(double* a, uint32_t* keys) {
#pragma omp parallel for schedule(static)
  for (long i = 0; i < count; i++) {
    a[i] = (double)(i % 1013);
    keys[i] = (uint32_t)((uint64_t)i * 2654435761u % 65536);
  }
}

static void reductions(const double* a, const uint32_t* keys) {
  double sum = 0, greatest = -1;
  uint64_t all = 0, bits = 0;
  int any = 0, every = 1;
#pragma omp parallel for schedule(dynamic, 1024) reduction(+ : sum, all) reduction(max : greatest) reduction(^ : bits) \
    reduction(|| : any) reduction(&& : every)
  for (long i = 0; i < count; i++) {
    sum += a[i];
    all += keys[i];
    bits ^= (uint64_t)keys[i] << (i % 48);
    if (a[i] > greatest) greatest = a[i];
    any = any || keys[i] == 17;
    every = every && a[i] >= 0;
  }
  printf("reductions %.1f %.1f %llu %llu %d %d\n", sum, greatest, (unsigned long long)all, (unsigned long long)bits,
         any, every);
}

// A part of an array in the heap as what is reduced.
static void histogram(const uint32_t* keys) {
  enum { kParts = 256 };
  uint64_t* parts = calloc(kParts, sizeof *parts);
#pragma omp parallel for schedule(guided) reduction(+ : parts[ : kParts])
  for (long i = 0; i < count; i++) parts[keys[i] % kParts]++;
  uint64_t sum = 0;
  for (int i = 0; i < kParts; i++) sum = sum * 31 + parts[i];
  printf("histogram %llu\n", (unsigned long long)sum);
  free(parts);
}

static void stencil(const double* a, double* b) {
  const long columns = 512, rows = count / columns;
#pragma omp parallel for collapse(2) schedule(static, 4096)
  for (long i = 1; i < rows - 1; i++) {
    for (long j = 1; j < columns - 1; j++) {
      b[i * columns + j] =
          (a[(i - 1) * columns + j] + a[(i + 1) * columns + j] + a[i * columns + j - 1] + a[i * columns + j + 1]) / 4;
    }
  }
  double sum = 0;
#pragma omp parallel for simd reduction(+ : sum) schedule(simd : static)
  for (long i = 0; i < count; i++) sum += b[i] * 4;
  printf("stencil %.2f\n", sum);
}

static void sections(const double* a, const uint32_t* keys) {
  long first = -1, last = -1, odd = 0;
#pragma omp parallel sections num_threads(3)
  {
#pragma omp section
    for (long i = 0; i < count && first < 0; i++) first = a[i] == 999 ? i : first;
#pragma omp section
    for (long i = count - 1; i >= 0 && last < 0; i--) last = a[i] == 5 ? i : last;
#pragma omp section
    for (long i = 0; i < count; i++) odd += keys[i] % 2;
  }
  printf("sections %ld %ld %ld\n", first, last, odd);
}

static void ordered_and_last(const double* a) {
  uint64_t sum = 0;
  long last = 0;
#pragma omp parallel for ordered lastprivate(last) schedule(dynamic)
  for (long i = 0; i < 500; i++) {
    last = i * 3;
    const uint64_t mine = (uint64_t)a[i * (count / 500)];
#pragma omp ordered
    sum = sum * 31 + mine;
  }
  printf("ordered %llu %ld\n", (unsigned long long)sum, last);
}

int main(int argc, char** argv) {
  const size_t bytes = (argc > 1 ? (size_t)atol(argv[1]) : 1) << 20;
  count = (long)(bytes / (2 * sizeof(double) + sizeof(uint32_t))) / 512 * 512;
  omp_set_dynamic(0);
  omp_set_num_threads(4);
  double *a = malloc((size_t)count * sizeof *a), *b = calloc((size_t)count, sizeof *b);
  uint32_t* keys = malloc((size_t)count * sizeof *keys);
  if (a == NULL || b == NULL || keys == NULL) return 1;
  fill(a, keys);
  reductions(a, keys);
  histogram(keys);
  stencil(a, b);
  sections(a, keys);
  ordered_and_last(b);
  free(a), free(b), free(keys);
  return 0;
}
