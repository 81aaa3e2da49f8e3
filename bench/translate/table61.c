/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The three functions that seed 000 measured (its appendix A, table 6.1), each so often in a row:
 *
 *   table61 stack|heap|heap_loads|producer_consumer CALLS [FLUSHES_EACH]
 *
 * A call of `heap` is 100 stores of a character and no load; `heap_loads`, which is not the seed's, 100 loads and no
 * store.
 *
 * Prints microseconds a call, one flush at the end included, and the sum of what was written, which is the same in all
 * ways to compile it. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kRows = 10, kColumns = 10, kItems = 50 };

/* There where the program was translated. NOLINTNEXTLINE(bugprone-reserved-identifier) */
__attribute__((weak)) void __farheap_flush(void);

static sem_t g_empty, g_full;
static int* g_data;
static char* g_heap_matrix;

static void flush(void) {
  if (&__farheap_flush != NULL) __farheap_flush();
}

/* Volatile: each element is written, by itself, as in the seed's unoptimised programs. Unlike there, each call writes
 * other values: a flush would find nothing to do. */
__attribute__((noinline)) static long stack_allocation(long turn) {
  volatile char matrix[kRows * kColumns];
  for (int i = 0; i < kRows; i++) {
    for (int j = 0; j < kColumns; j++) matrix[i * kColumns + j] = (char)((i * kColumns + j + turn) % 128);
  }
  return matrix[turn * 7 % (kRows * kColumns)]; /* one look back, so that what was written counts in the sum */
}

__attribute__((noinline)) static long heap_allocation(long turn) {
  volatile char* const matrix = g_heap_matrix;
  for (int i = 0; i < kRows; i++) {
    for (int j = 0; j < kColumns; j++) matrix[i * kColumns + j] = (char)((i * kColumns + j + turn) % 128);
  }
  return 1;
}

__attribute__((noinline)) static long heap_loads(long turn) {
  if (turn == 0) heap_allocation(7);
  const volatile char* const matrix = g_heap_matrix;
  long sum = 0;
  for (int i = 0; i < kRows * kColumns; i++) sum += matrix[i] * (i + 1L);
  return sum;
}

static void* produce(void* arg) {
  for (int i = 1; i <= kItems; i++) {
    sem_wait(&g_empty);
    *(volatile int*)g_data = i;
    sem_post(&g_full);
  }
  return arg;
}

static void* consume(void* arg) {
  long* const total = arg;
  long sum = 0;
  for (int i = 0; i < kItems; i++) {
    sem_wait(&g_full);
    sum += *(volatile int*)g_data;
    sem_post(&g_empty);
  }
  *total = sum;
  return NULL;
}

__attribute__((noinline)) static long producer_consumer(long turn) {
  (void)turn;
  pthread_t producer, consumer;
  static long total;
  pthread_create(&producer, NULL, produce, NULL);
  pthread_create(&consumer, NULL, consume, &total);
  pthread_join(producer, NULL);
  pthread_join(consumer, NULL);
  return total;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

int main(int count, char** arguments) {
  long (*call)(long turn) = NULL;
  if (count >= 3 && strcmp(arguments[1], "stack") == 0) call = stack_allocation;
  if (count >= 3 && strcmp(arguments[1], "heap") == 0) call = heap_allocation;
  if (count >= 3 && strcmp(arguments[1], "heap_loads") == 0) call = heap_loads;
  if (count >= 3 && strcmp(arguments[1], "producer_consumer") == 0) call = producer_consumer;
  if (call == NULL) {
    fprintf(stderr, "usage: table61 stack|heap|heap_loads|producer_consumer CALLS [FLUSHES_EACH]\n");
    return 2;
  }
  const long calls = strtol(arguments[2], NULL, 10);
  const int flushes_each = count > 3;
  sem_init(&g_empty, 0, 1);
  sem_init(&g_full, 0, 0);
  g_data = calloc(1, sizeof *g_data);
  g_heap_matrix = calloc(kRows, kColumns);
  if (g_data == NULL || g_heap_matrix == NULL) return 1;
  long sum = call(0); /* what only the first one pays is not a call's */
  flush();
  const double from = now();
  for (long i = 0; i < calls; i++) {
    sum += call(i + 1);
    if (flushes_each) flush();
  }
  flush();
  const double took = now() - from;
  for (int i = 0; i < kRows * kColumns; i++) sum += g_heap_matrix[i] * (i + 1L);
  printf("{\"us\": %.4f, \"checksum\": %ld}\n", took / (double)calls, sum);
  free(g_heap_matrix);
  free(g_data);
  return 0;
}
