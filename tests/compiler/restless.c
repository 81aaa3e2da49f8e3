/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Loaded into a program beside Farheap: twice the least budget of memory, all of which is written while the program
 * waits, now and then, so that the program's own pages leave, however few it has and however soon it ends. Programs
 * outside of the folder RESTLESS_IN, and those that are not on Farheap, are left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kPage = 4096, kPages = (64 << 20) / kPage, kAsk = SIGURG /* nobody else's, and ignored by default */ };

static volatile unsigned char* memory;
static pthread_t program;
static atomic_uint turns; /* how often all of it has been written */
static sem_t held;

static void write_all(void) {
  for (long page = 0; page < kPages; page++) memory[page * (long)kPage]++;
}

static void wait_for_a_turn(int signal) {
  const struct timespec pause = {.tv_nsec = 200000};
  const unsigned before = atomic_load(&turns);
  const int error = errno;
  (void)signal;
  sem_post(&held);
  while (atomic_load(&turns) == before) nanosleep(&pause, NULL);
  errno = error;
}

/* Twice as long after each time, so that programs that take long are not held for ever. */
static void* hold_now_and_then(void* nothing) {
  for (long run = 500000; run < 1000000000; run *= 2) {
    const struct timespec until = {.tv_nsec = run};
    nanosleep(&until, NULL);
    if (pthread_kill(program, kAsk) != 0) break;
    sem_wait(&held);
    write_all();
    atomic_fetch_add(&turns, 1);
  }
  return nothing;
}

__attribute__((constructor)) static void begin(void) {
  const char* const folder = getenv("RESTLESS_IN");
  char name[4096] = {0};
  if (folder == NULL || dlsym(RTLD_DEFAULT, "farheap_active") == NULL) return;
  if (readlink("/proc/self/exe", name, sizeof name - 1) < 0 || strstr(name, folder) != name) return;
  memory = malloc((size_t)kPages * kPage);
  if (memory == NULL) _exit(90);
  write_all();
  program = pthread_self();
  sem_init(&held, 0, 0);
  struct sigaction action = {.sa_handler = wait_for_a_turn, .sa_flags = SA_RESTART};
  sigaction(kAsk, &action, NULL);
  /* The program's signals are not for this thread. */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  pthread_t thread;
  if (pthread_create(&thread, NULL, hold_now_and_then, NULL) != 0) _exit(91);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}
