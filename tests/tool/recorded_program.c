// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program to be recorded: recorded_program MIB MODE. It allocates MIB in one piece at one line and as much in small
// objects at another, and goes through the first three times. The lines that tests look for carry a MARK.
//
//   once    and ends
//   slowly  before it goes through the memory again, it waits until no more pages go out of view
//   wait    says "ready", and waits for the end of its input
//   fork    a child does the same with memory of its own; both wait for each other
//   thread  in a thread
//   exec    and executes itself, once
//   many    and starts 100 children that do a little
//   rounds  says "ready" and its number, and goes through the memory, with a little more that is new each time, until
//           its input ends
//   forked  the same, in itself and in a child that is made before, whose number it says, too
//   forking the same, and in each round a child is made that goes through the memory once
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kPage = 4096, kMiB = 1 << 20, kSmall = 64 };

static size_t g_bytes;
static int g_slowly, g_forking;
static char* g_large;
static char** g_small;
static volatile unsigned long g_sum;

__attribute__((noinline)) static char* make_large(size_t bytes) {
  return malloc(bytes);  // MARK large
}

__attribute__((noinline)) static void make_small(char** into, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    into[i] = malloc(kSmall);  // MARK small
    into[i][0] = 1;
  }
}

__attribute__((noinline)) static void write_large(char* bytes, size_t count) {
  for (size_t at = 0; at < count; at += kPage) bytes[at] = 1;  // MARK write
}

__attribute__((noinline)) static unsigned long read_large(const char* bytes, size_t count) {
  unsigned long sum = 0;
  for (size_t at = 0; at < count; at += kPage) sum += (unsigned long)bytes[at];  // MARK read
  return sum;
}

__attribute__((noinline)) static char* make_later(size_t bytes) {
  return malloc(bytes);  // MARK later
}

static int input_goes_on(void) {
  struct pollfd input = {STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, 0) == 0;
}

static void rounds(void) {
  while (input_goes_on()) {
    char* later = make_later(kMiB);
    write_large(later, kMiB);
    g_sum += read_large(g_large, g_bytes) + read_large(later, kMiB);
    free(later);
    if (!g_forking) continue;
    const pid_t child = fork();
    if (child == 0) {
      g_sum += read_large(g_large, g_bytes);
      _exit(0);
    }
    waitpid(child, NULL, 0);
  }
}

static size_t pages_in_view(char* bytes, size_t count) {
  static unsigned char there[1 << 16];
  size_t sum = 0;
  if (mincore(bytes, count, there) != 0) return 0;
  for (size_t page = 0; page < count / kPage; ++page) sum += there[page] & 1;
  return sum;
}

// Three looks that agree; not for ever.
static void settle(void) {
  char* first = (char*)(((unsigned long)g_large + kPage - 1) / kPage * kPage);
  const struct timespec pause = {0, 50000000};
  size_t before = 0;
  for (int looks = 0, agree = 0; looks < 100 && agree < 3; ++looks) {
    nanosleep(&pause, NULL);
    const size_t now = pages_in_view(first, g_bytes - kPage);
    agree = now == before ? agree + 1 : 0;
    before = now;
  }
}

static void* work(void* nothing) {
  g_large = make_large(g_bytes);
  write_large(g_large, g_bytes);
  const size_t count = g_bytes / kSmall;
  g_small = malloc(count * sizeof *g_small);
  make_small(g_small, count);
  for (size_t i = 0; i < count; i += 2) free(g_small[i]);
  for (int pass = 0; pass < 3; ++pass) {
    if (g_slowly) settle();
    g_sum += read_large(g_large, g_bytes);
  }
  return nothing;
}

static void many(void) {
  for (int i = 0; i < 100; ++i) {
    if (fork() == 0) {
      char* mine = make_large(kMiB);
      write_large(mine, kMiB);
      _exit(0);
    }
    wait(NULL);
  }
}

int main(int count, char** arguments) {
  if (count < 3) return 2;
  g_bytes = (size_t)atol(arguments[1]) * kMiB;
  const char* mode = arguments[2];
  int status = 0;
  g_slowly = strcmp(mode, "slowly") == 0;
  if (strcmp(mode, "fork") == 0) {
    const pid_t child = fork();
    work(NULL);
    if (child == 0) return 0;
    waitpid(child, &status, 0);
  } else if (strcmp(mode, "thread") == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
  } else {
    work(NULL);
  }
  if (strcmp(mode, "many") == 0) many();
  g_forking = strcmp(mode, "forking") == 0;
  if (strcmp(mode, "rounds") == 0 || strcmp(mode, "forked") == 0 || g_forking) {
    const pid_t child = strcmp(mode, "forked") == 0 ? fork() : 1;
    if (child != 0) {
      printf("ready %d %d\n", (int)getpid(), (int)child);
      fflush(stdout);
    }
    rounds();
    if (child == 0) _exit(0);
    if (child != 1) waitpid(child, &status, 0);
  }
  if (strcmp(mode, "exec") == 0) execl("/proc/self/exe", arguments[0], arguments[1], "once", (char*)NULL);
  if (strcmp(mode, "wait") == 0) {
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
    }
  }
  printf("%lu\n", g_sum);
  return status;
}
