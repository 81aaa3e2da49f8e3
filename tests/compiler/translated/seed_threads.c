/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Seed 000, appendix A: a producer, a consumer and their buffer in the heap; threads that add to one number under a
 * lock, and, beyond the seed, atomically without one. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { kCount = 50, kThreads = 3 };

static sem_t empty, full, lock;
static int* data;
static long* target;
static _Atomic long* counter;
static _Atomic(int*)* last;

static void* produce(void* arg) {
  for (int i = 1; i <= kCount; i++) {
    sem_wait(&empty);
    *data = i;
    sem_post(&full);
  }
  return arg;
}

static void* consume(void* arg) {
  int* total = arg;
  for (int i = 0; i < kCount; i++) {
    sem_wait(&full);
    *total += *data;
    sem_post(&empty);
  }
  return total;
}

static void* add(void* arg) {
  for (int i = 0; i < kCount; i++) {
    sem_wait(&lock);
    *target += 1;
    sem_post(&lock);
    atomic_fetch_add(counter, 3);
    long seen = atomic_load(counter);
    while (!atomic_compare_exchange_weak(counter, &seen, seen - 1)) {
    }
    atomic_store(last, arg);
  }
  return NULL;
}

int main(void) {
  sem_init(&empty, 0, 1);
  sem_init(&full, 0, 0);
  sem_init(&lock, 0, 1);
  data = malloc(sizeof *data);
  int* total = calloc(1, sizeof *total);
  pthread_t* threads = malloc(kThreads * sizeof *threads);
  void* result = NULL;
  pthread_create(&threads[0], NULL, produce, NULL);
  pthread_create(&threads[1], NULL, consume, total);
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], &result);
  printf("consumed %d %d\n", *total, result == total);
  target = calloc(1, sizeof *target);
  counter = calloc(1, sizeof *counter);
  last = calloc(1, sizeof *last);
  for (int i = 0; i < kThreads; i++) pthread_create(&threads[i], NULL, add, total);
  for (int i = 0; i < kThreads; i++) pthread_join(threads[i], NULL);
  printf("added %ld %ld %d\n", *target, atomic_load(counter), atomic_load(last) == total);
  printf("or %ld\n", atomic_fetch_or(counter, 1) | atomic_exchange(counter, 7) | atomic_fetch_xor(counter, 5));
  printf("left %ld\n", atomic_load(counter));
  free(threads);
  free(total);
  free(data);
  return 0;
}
