/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program that knows in which order it uses its memory: ordered_guest MIB ROUNDS MODE. It goes through tiles of 2 MiB
 * in a shuffled order, each round the same, and prints what it has computed.
 *
 *   silent    it says nothing
 *   early     it says the order before it touches anything, when no page can have left yet
 *   said      ... after its memory was filled
 *   once      ... before each round, of that round alone
 *   others    it says another order than its own
 *   ended     ... and takes that back before it begins
 *   hints     tiles are kept, done with, streamed, needed and left alone as chance says, by a second thread, all the
 * time forked    it says the order, and a child of it uses all as it likes, and says one of its own
 *
 * It is linked without libfarheap: without `farheap run` there is nobody to tell.
 */
#define _GNU_SOURCE
#define FARHEAP_WEAK_HINTS
#include <farheap/farheap.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kTileBytes = 2 << 20, kTileWords = kTileBytes / 8, kPageWords = 512, kTimes = 24 };

static uint64_t mixed(uint64_t value, uint64_t word) {
  value = (value ^ word) * 0xd6e8feb86659fd93u;
  return value ^ value >> 32;
}

static void shuffle(size_t* order, size_t count, uint64_t seed) {
  for (size_t i = 0; i < count; ++i) order[i] = i;
  for (size_t i = count; i > 1; --i) {
    const size_t other = (seed = mixed(seed, i)) % i, kept = order[i - 1];
    order[i - 1] = order[other];
    order[other] = kept;
  }
}

static uint64_t* g_words;
static size_t g_tiles;
static volatile int g_stop;

static int say(const size_t* order, size_t round) {
  if (&farheap_expect_order == NULL) return 0;
  farheap_step* const steps = calloc(g_tiles, sizeof *steps);
  for (size_t i = 0; i < g_tiles; ++i) {
    steps[i].address = g_words + order[i] * kTileWords;
    steps[i].bytes = kTileBytes;
  }
  const int answer = farheap_expect_order(steps, g_tiles, round);
  free(steps);
  return answer;
}

static uint64_t use(uint64_t* tile, uint64_t sum) {
  for (size_t page = 0; page < kTileWords; page += kPageWords) {
    for (int k = 0; k < kTimes; ++k) {
      for (size_t i = page; i < page + kPageWords; ++i) sum = mixed(sum, tile[i]);
    }
    tile[page + sum % kPageWords] += sum;
  }
  return sum;
}

static void* say_hints(void* seed) {
  uint64_t chance = (uintptr_t)seed;
  while (&farheap_hint != NULL && !g_stop) {
    chance = mixed(chance, 1);
    const uint64_t* const at = g_words + chance % (g_tiles * kTileWords);
    if (farheap_hint(at, chance >> 40, (farheap_hint_kind)(1 + chance % 5)) < 0) exit(5);
    usleep(50);
  }
  return NULL;
}

int main(int count, char** arguments) {
  if (count < 4) return 2;
  g_tiles = (size_t)atol(arguments[1]) / 2;
  const int rounds = atoi(arguments[2]);
  const char* const mode = arguments[3];
  const int says_once = strcmp(mode, "once") == 0, is_forked = strcmp(mode, "forked") == 0;
  size_t* const order = calloc(g_tiles, sizeof *order);
  size_t* const other = calloc(g_tiles, sizeof *other);
  g_words = aligned_alloc(kTileBytes, g_tiles * kTileBytes);
  if (order == NULL || other == NULL || g_words == NULL) return 3;
  shuffle(order, g_tiles, 1);
  shuffle(other, g_tiles, 2);
  if (strcmp(mode, "early") == 0 && say(order, 0) != 0) return 4;
  for (size_t i = 0; i < g_tiles; ++i) {
    for (size_t k = 0; k < kTileWords; ++k) g_words[order[i] * kTileWords + k] = mixed(order[i], k);
  }
  if ((strcmp(mode, "said") == 0 || is_forked) && say(order, 0) != 0) return 4;
  if (strcmp(mode, "others") == 0 && say(other, 0) != 0) return 4;
  if (strcmp(mode, "ended") == 0 && say(order, 0) != 0) return 4;
  if (strcmp(mode, "ended") == 0 && &farheap_expect_order != NULL && farheap_expect_order(NULL, 0, FARHEAP_ONCE) != 0) {
    return 4;
  }
  pthread_t hinter;
  const int has_hinter = strcmp(mode, "hints") == 0;
  if (has_hinter && pthread_create(&hinter, NULL, say_hints, (void*)3) != 0) return 5;
  uint64_t sum = 1;
  for (int round = 0; round < rounds; ++round) {
    if (says_once && say(order, FARHEAP_ONCE) != 0) return 4;
    for (size_t i = 0; i < g_tiles; ++i) sum = use(g_words + order[i] * kTileWords, sum);
    if (is_forked && round == 0) {
      const pid_t child = fork();
      if (child == 0) {
        for (size_t i = 0; i < g_tiles; ++i) sum = use(g_words + i * kTileWords, sum);
        if (say(other, FARHEAP_ONCE) < 0) _exit(4);
        for (size_t i = 0; i < g_tiles; ++i) sum = use(g_words + other[i] * kTileWords, sum);
        printf("%016lx of the child\n", (unsigned long)sum);
        fflush(stdout);
        _exit(0);
      }
      int status = 0;
      if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return 6;
    }
  }
  g_stop = 1;
  if (has_hinter) pthread_join(hinter, NULL);
  printf("%016lx\n", (unsigned long)sum);
  return 0;
}
