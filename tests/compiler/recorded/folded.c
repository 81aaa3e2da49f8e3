/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Two threads with more call paths than there is room for; late, one path in each takes most of the time. With an
   argument: says how much memory the process had when a third was done, and in the end. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FUNCTIONS = 48, COLD = 20000, HOT = 3000, DEPTH = 7 };

struct state {
  unsigned long seed;
  long visits; /* of functions and loops */
  long data[64];
  long sum;
};
typedef void any(struct state*, int);
extern any* const all[FUNCTIONS];
static pthread_barrier_t meeting;
static long memory[2];

#define DRAW(s) ((unsigned)(((s)->seed = (s)->seed * 6364136223846793005ul + 1442695040888963407ul) >> 33))
#define F(i)                                                              \
  static void f##i(struct state* s, int depth) {                          \
    s->visits++;                                                          \
    s->data[i % 64] += i;                                                 \
    if (depth == 0) return;                                               \
    if (i % 3 == 0) {                                                     \
      s->visits++;                                                        \
      for (int k = 0; k < 2; k++) all[DRAW(s) % FUNCTIONS](s, depth - 1); \
    } else {                                                              \
      all[DRAW(s) % FUNCTIONS](s, depth - 1);                             \
    }                                                                     \
  }
// clang-format off
F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15)
F(16) F(17) F(18) F(19) F(20) F(21) F(22) F(23) F(24) F(25) F(26) F(27) F(28) F(29) F(30) F(31)
F(32) F(33) F(34) F(35) F(36) F(37) F(38) F(39) F(40) F(41) F(42) F(43) F(44) F(45) F(46) F(47)
    // clang-format on
    any* const all[FUNCTIONS] = {f0,  f1,  f2,  f3,  f4,  f5,  f6,  f7,  f8,  f9,  f10, f11, f12, f13, f14, f15,
                                 f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31,
                                 f32, f33, f34, f35, f36, f37, f38, f39, f40, f41, f42, f43, f44, f45, f46, f47};

static void hot_3(struct state* s) {
  s->visits += 2;
  for (int i = 0; i < 3000; i++) s->sum += s->data[i % 64];
}
static void hot_2(struct state* s) {
  s->visits++;
  hot_3(s);
}
static void hot_1(struct state* s) {
  s->visits++;
  hot_2(s);
}

static void look(int which) {
  char words[4096];
  FILE* file = fopen("/proc/self/status", "r");
  const size_t got = fread(words, 1, sizeof words - 1, file);
  words[got] = 0;
  fclose(file);
  memory[which] = atol(strstr(words, "VmRSS:") + 6);
}

static void* work(void* argument) {
  struct state* s = argument;
  s->visits++;
  s->visits++;
  for (int i = 0; i < COLD; i++) {
    all[i % FUNCTIONS](s, DEPTH);
    if (i == COLD / 3) pthread_barrier_wait(&meeting);
  }
  s->visits++;
  for (int i = 0; i < HOT; i++) {
    hot_1(s);
    all[i % FUNCTIONS](s, DEPTH);
  }
  return NULL;
}

int main(int count, char** words) {
  static struct state states[2];
  pthread_t threads[2];
  (void)words;
  pthread_barrier_init(&meeting, NULL, 3);
  for (int i = 0; i < 2; i++) {
    states[i].seed = 17 + i;
    pthread_create(&threads[i], NULL, work, &states[i]);
  }
  pthread_barrier_wait(&meeting);
  if (count > 1) look(0);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  if (count > 1) look(1);
  printf("%ld %ld\n", states[0].sum, states[1].sum);
  /* main() and its two loops; the functions that only looked do not count. */
  printf("%ld\n", states[0].visits + states[1].visits + 3);
  if (count > 1) fprintf(stderr, "%ld %ld\n", memory[0], memory[1]);
  return 0;
}
