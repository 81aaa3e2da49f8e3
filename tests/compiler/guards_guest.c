/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Guards written by hand, as level guard of farcc makes them: threads that look up and change words at random, some on
 * stacks that lie in the heap, while signals come, children are forked and threads are cancelled.
 *
 *   compiler_guards_guest MIB ROUNDS GUARDED(0|1) FORKS(0|1)
 *
 * Prints seconds of the rounds, for people, on standard error. */
#include <errno.h>
#include <farheap/residency.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kPage = 4096, kThreads = 4, kSteps = 20000, kStackBytes = 1 << 20 };

static struct farheap_residency g_view = {(uintptr_t)1 << 63, 0, NULL};
static int g_guarded;
static uint64_t* g_words;
static size_t g_pages;
static volatile sig_atomic_t g_alarms;

static void check(const char* what, int holds) {
  if (holds) return;
  printf("FAILED: %s\n", what);
  exit(3);
}

/* The signal handler is a user, too: that it may be is what is tested. NOLINTBEGIN(bugprone-signal-handler) */
static void guard(const void* address, unsigned write) {
  const uintptr_t offset = (uintptr_t)address - __atomic_load_n(&g_view.begin, __ATOMIC_ACQUIRE);
  if (offset >= __atomic_load_n(&g_view.bytes, __ATOMIC_ACQUIRE)) return;
  if (__atomic_load_n(&g_view.away[offset / kPage], __ATOMIC_RELAXED) == 0) return;
  errno = 4711;
  __farheap_fetch(address, write);
  if (errno != 4711) _exit(4);
}
/* NOLINTEND(bugprone-signal-handler) */

static uint64_t next(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

/* Each page belongs to one thread; its words hold its number times a count that grows. */
static uint64_t* page_of(size_t number) { return g_words + number * (kPage / sizeof *g_words); }

static void step(uint64_t* random, size_t part, size_t parts) {
  const size_t page = next(random) % (g_pages / parts) * parts + part;
  uint64_t* const at = page_of(page) + next(random) % (kPage / sizeof *g_words);
  const unsigned write = next(random) % 4 == 0;
  if (g_guarded) guard(at, write);
  check("a word holds what was written", *at % (page + 1) == 0);
  if (write) *at += page + 1;
}

static void* work(void* part) {
  uint64_t random = 88172645463325252u + (size_t)part;
  for (int i = 0; i < kSteps; ++i) step(&random, (size_t)part, kThreads);
  return NULL;
}

static void on_alarm(int signal) {
  (void)signal;
  ++g_alarms;
  const char* const at = (const char*)page_of((size_t)g_alarms * 7919 % g_pages);
  if (g_guarded) guard(at, 0);
  (void)*(const volatile char*)at;
}

static void in_threads(int on_own_stacks) {
  pthread_t threads[kThreads];
  void* stacks[kThreads] = {NULL};
  for (size_t i = 0; i < kThreads; ++i) {
    pthread_attr_t how;
    pthread_attr_init(&how);
    if (on_own_stacks) {
      stacks[i] = aligned_alloc(kPage, kStackBytes);
      check("a stack can be used", stacks[i] != NULL && pthread_attr_setstack(&how, stacks[i], kStackBytes) == 0);
    }
    check("a thread starts", pthread_create(&threads[i], &how, work, (void*)i) == 0);
    pthread_attr_destroy(&how);
  }
  for (size_t i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  for (size_t i = 0; i < kThreads; ++i) free(stacks[i]);
}

static void* read_until_cancelled(void* seed) {
  uint64_t random = 4101842887655102017u + (size_t)seed;
  for (;;) {
    const uint64_t* const at = page_of(next(&random) % g_pages);
    if (g_guarded) guard(at, 0);
    (void)*(const volatile uint64_t*)at;
    pthread_testcancel();
  }
  return NULL;
}

static void threads_that_are_cancelled(void) {
  for (size_t turn = 0; turn < 30; ++turn) {
    pthread_t thread;
    check("a thread starts", pthread_create(&thread, NULL, read_until_cancelled, (void*)turn) == 0);
    const struct timespec moment = {0, 2 * 1000 * 1000};
    nanosleep(&moment, NULL);
    pthread_cancel(thread);
    void* end = NULL;
    check("a cancelled thread ends", pthread_join(thread, &end) == 0 && end == PTHREAD_CANCELED);
  }
}

static void children(void) {
  pthread_t reader;
  check("a thread starts", pthread_create(&reader, NULL, read_until_cancelled, (void*)77) == 0);
  for (int turn = 0; turn < 8; ++turn) {
    const pid_t child = fork();
    if (child == 0) {
      uint64_t random = 1181783497276652981u + (unsigned)turn;
      for (int i = 0; i < 2000; ++i) step(&random, 0, 1);
      _exit(0);
    }
    int status = 1;
    check("a child reads and writes", child > 0 && waitpid(child, &status, 0) == child && status == 0);
  }
  pthread_cancel(reader);
  pthread_join(reader, NULL);
}

int main(int count, char** arguments) {
  check("four arguments", count == 5);
  g_pages = strtoul(arguments[1], NULL, 10) * 256;
  const unsigned long rounds = strtoul(arguments[2], NULL, 10);
  g_guarded = arguments[3][0] == '1';
  if (&__farheap_residency != NULL) {
    __farheap_residency(&g_view);
    __farheap_residency(&g_view); /* as a module does that has two constructors for it */
  }
  g_words = aligned_alloc(kPage, g_pages * kPage);
  check("there is memory", g_words != NULL);
  for (size_t page = 0; page < g_pages; ++page) {
    for (size_t i = 0; i < kPage / sizeof *g_words; ++i) page_of(page)[i] = (page + 1) * (i % 7);
  }
  uint64_t random = 88172645463325252u;
  struct timespec from, until;
  clock_gettime(CLOCK_MONOTONIC, &from);
  for (unsigned long i = 0; i < rounds * kSteps; ++i) step(&random, 0, 1);
  clock_gettime(CLOCK_MONOTONIC, &until);
  fprintf(stderr, "one thread: %.3f s\n",
          (double)(until.tv_sec - from.tv_sec) + (double)(until.tv_nsec - from.tv_nsec) * 1e-9);
  in_threads(0);
  signal(SIGALRM, on_alarm);
  const struct itimerval often = {{0, 3000}, {0, 3000}};
  setitimer(ITIMER_REAL, &often, NULL);
  in_threads(1);
  threads_that_are_cancelled();
  const struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &never, NULL);
  if (arguments[4][0] == '1') children();
  if (&__farheap_residency_gone != NULL) __farheap_residency_gone(&g_view);
  printf("all is right\n");
  return 0;
}
