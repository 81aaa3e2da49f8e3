/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Threads, at once and one after the other; atomics. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static long *shared;

static long add_up(const long *from, int n) {
  long sum = 0;
  for (int i = 0; i < n; i++) sum += from[i];
  return sum;
}

static void *work(void *argument) {
  const long which = (long)argument;
  for (int i = 0; i < 300; i++) shared[which] += add_up(shared + 8, 8) + 1;
  return NULL;
}

int main(void) {
  shared = calloc(16, sizeof *shared);
  for (int i = 8; i < 16; i++) shared[i] = i;
  for (int round = 0; round < 3; round++) {
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (long i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  }
  printf("%ld %ld\n", shared[0], shared[3]);
  free(shared);
  return 0;
}
