// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// OpenMP: atomics of all kinds on the heap, critical sections, barriers, single, master, threadprivate and other
// copies, nested regions. Its argument: MiB of counters. A second argument: locks that lie in the heap, too.
#include <complex.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct Shared {
  int32_t narrow;
  int64_t wide;
  uint8_t byte;
  float fraction;
  double whole;
  long double longest;
  double complex pair;
  uint64_t in_named, in_critical;
};

static void atomics(long turns) {
  struct Shared* shared = calloc(1, sizeof *shared);
  uint64_t captured = 0;
#pragma omp parallel for schedule(dynamic, 16) reduction(+ : captured)
  for (long i = 0; i < turns; i++) {
    long before;
#pragma omp atomic
    shared->narrow += (int32_t)(i % 7);
#pragma omp atomic capture
    before = shared->wide++;
    captured += (uint64_t)before;
#pragma omp atomic
    shared->byte ^= (uint8_t)i;
#pragma omp atomic
    shared->fraction += 1;
#pragma omp atomic update
    shared->whole = shared->whole + 0.5;
#pragma omp critical(named)
    shared->in_named += (uint64_t)i * 3;
#pragma omp critical
    shared->in_critical += (uint64_t)i * 5;
  }
  int32_t narrow;
#pragma omp atomic read
  narrow = shared->narrow;
#pragma omp atomic write
  shared->byte = (uint8_t)(shared->byte + 1);
  printf("atomics %d %lld %d %.1f %.1f %llu %llu %llu\n", narrow, (long long)shared->wide, shared->byte,
         (double)shared->fraction, shared->whole, (unsigned long long)captured, (unsigned long long)shared->in_named,
         (unsigned long long)shared->in_critical);
  free(shared);
}

// Those that the compiler leaves to the OpenMP library.
static void large_atomics(long turns) {
  struct Shared* shared = calloc(1, sizeof *shared);
#pragma omp parallel for
  for (long i = 0; i < turns; i++) {
#pragma omp atomic
    shared->longest += 0.25L;
#pragma omp atomic
    shared->pair += 1.0 + 2.0 * I;
  }
  printf("large atomics %.2Lf %.1f %.1f\n", shared->longest, creal(shared->pair), cimag(shared->pair));
  free(shared);
}

static void counters(size_t bytes) {
  const long count = (long)(bytes / sizeof(uint64_t));
  uint64_t* all = calloc((size_t)count, sizeof *all);
  // Neighbouring pages are every thread's at once.
#pragma omp parallel
  for (long turn = 0; turn < 3; turn++) {
    for (long i = omp_get_thread_num(); i < count; i += omp_get_num_threads()) all[i] += (uint64_t)(i + turn);
#pragma omp barrier
#pragma omp single
    for (long i = 0; i < count; i += 512) all[i]++;
#pragma omp for schedule(static, 777)
    for (long i = 0; i < count; i += 64) {
#pragma omp atomic
      all[i / 4096 * 4096] += 1;
    }
  }
  uint64_t sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (long i = 0; i < count; i++) sum += all[i] * (uint64_t)(i % 31);
  printf("counters %llu\n", (unsigned long long)sum);
  free(all);
}

static int* mine;
static long of_thread[3] = {1, 2, 3};
#pragma omp threadprivate(mine, of_thread)

static void private_copies(void) {
  long sum = 0, outer = 5, told = 0;
  of_thread[1] = 40;
#pragma omp parallel copyin(of_thread) firstprivate(outer) reduction(+ : sum)
  {
    mine = malloc(1000 * sizeof *mine);
    for (int i = 0; i < 1000; i++) mine[i] = i + omp_get_thread_num();
    of_thread[0] += omp_get_thread_num();
    outer += omp_get_thread_num();
    sum += of_thread[1];
  }
  // The threads are the same, and so is what they have.
#pragma omp parallel reduction(+ : sum)
  {
    long told_to_all;
    for (int i = 0; i < 1000; i++) sum += mine[i];
    sum += of_thread[0] * 100000;
#pragma omp single copyprivate(told_to_all)
    told_to_all = 77;
    sum += told_to_all;
#pragma omp master
    told = told_to_all;
    free(mine);
  }
  printf("private %ld %ld %ld\n", sum, outer, told);
}

static void nested(void) {
  omp_set_max_active_levels(2);
  long* sums = calloc(16, sizeof *sums);
#pragma omp parallel num_threads(2)
  {
    long* part = sums + 8 * omp_get_thread_num();
#pragma omp parallel for num_threads(2) firstprivate(part)
    for (int i = 0; i < 8; i++) part[i] = i * (1 + omp_get_ancestor_thread_num(1));
  }
  long sum = 0;
  for (int i = 0; i < 16; i++) sum = sum * 3 + sums[i];
  printf("nested %ld\n", sum);
  free(sums);
}

struct Locked {
  omp_lock_t lock;
  omp_nest_lock_t nest;
  long sum;
};

static void locks(long turns) {
  struct Locked* locked = calloc(1, sizeof *locked);
  omp_init_lock(&locked->lock);
  omp_init_nest_lock(&locked->nest);
#pragma omp parallel for
  for (long i = 0; i < turns; i++) {
    omp_set_lock(&locked->lock);
    locked->sum += i;
    omp_unset_lock(&locked->lock);
    omp_set_nest_lock(&locked->nest);
    omp_set_nest_lock(&locked->nest);
    omp_unset_nest_lock(&locked->nest);
    omp_unset_nest_lock(&locked->nest);
  }
  printf("locks %ld\n", locked->sum);
  omp_destroy_lock(&locked->lock);
  omp_destroy_nest_lock(&locked->nest);
  free(locked);
}

int main(int argc, char** argv) {
  const size_t bytes = (argc > 1 ? (size_t)atol(argv[1]) : 1) << 20;
  omp_set_dynamic(0);
  omp_set_num_threads(4);
  atomics(5000);
  counters(bytes);
  private_copies();
  nested();
  if (argc > 2) {
    fflush(stdout);
    large_atomics(2000);
    locks(2000);
  }
  return 0;
}
