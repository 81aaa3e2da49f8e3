/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The hook that compiled programs call, under `farheap run` and without: what it asks for comes, whatever it is given
 * it harms nothing, and signal handlers may call it. Prints the same in both. */
#include <farheap/loop_hint.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

enum { kPage = 4096, kMiB = 1 << 20, kPages = 64 * kMiB / kPage };

static char* g_memory;
static volatile sig_atomic_t g_alarms;

static void check(const char* what, int holds) {
  if (holds) return;
  printf("FAILED: %s\n", what);
  exit(3);
}

static uint64_t word(size_t page) { return page * 0x9e3779b97f4a7c15u + 1; }

static void check_page(size_t page) {
  uint64_t found;
  memcpy(&found, g_memory + page * kPage + 8 * (page % 512), sizeof found);
  check("each page holds what was written", found == word(page));
}

static size_t pages_in_view(size_t first, size_t count) {
  static unsigned char there[kPages];
  size_t seen = 0;
  if (mincore(g_memory + first * kPage, count * kPage, there) != 0) return 0;
  for (size_t i = 0; i < count; ++i) seen += there[i] & 1;
  return seen;
}

static void say(const void* begin, size_t bytes, ptrdiff_t stride, unsigned flags) {
  /* That a signal handler may call it is what is tested. NOLINTNEXTLINE(bugprone-signal-handler) */
  if (&__farheap_loop != NULL) __farheap_loop(begin, bytes, stride, flags);
}

/* Random, so that no stream is seen and nothing is read ahead: the last half of it is in memory. */
static void touch_all(void) {
  for (size_t i = 0; i < kPages; ++i) check_page(i * 7919 % kPages);
}

/* Whether more of the megabyte at `first` is in view than `before`; some time is given for it. */
static int came_into_view(size_t first, size_t before) {
  for (int tries = 0; tries < 50; ++tries) {
    const struct timespec moment = {0, 10 * 1000 * 1000};
    nanosleep(&moment, NULL);
    if (pages_in_view(first, kMiB / kPage) > before) return 1;
  }
  return 0;
}

/* Pages may wait in memory while they are out of view, and what leaves first is the pager's business. Advice brings
 * nothing where the pages that it is for are in memory, and a busy machine may pass it over. So what was not used for
 * long is made to leave until some of it is seen to come back. */
static void what_is_asked_for_comes(size_t first, unsigned flags, ptrdiff_t stride) {
  const size_t far = kPages / 2, megabyte = kMiB / kPage;
  const size_t begin = (flags & FARHEAP_LOOP_BACKWARD) != 0 ? first + megabyte - kPages / 4 : first;
  for (int turn = 0;; ++turn) {
    check("what a loop will touch first is brought in", turn < 60);
    for (size_t i = 0; i < far; ++i) check_page((first + far + i * 7919 % far) % kPages);
    const size_t before = pages_in_view(first, megabyte);
    if (before >= megabyte / 2) continue;
    say(g_memory + begin * kPage, kPages / 4 * (size_t)kPage, stride, flags);
    if (came_into_view(first, before)) return;
  }
}

static void nonsense_is_harmless(void) {
  const size_t sizes[] = {0,       1, kMiB, 64 * kMiB, (size_t)1 << 40, (size_t)1 << 47, SIZE_MAX / 2, SIZE_MAX - 1,
                          SIZE_MAX};
  const ptrdiff_t strides[] = {0, 1, -1, 8, kMiB, -kMiB, PTRDIFF_MAX, PTRDIFF_MIN};
  char on_stack = 0;
  const void* begins[] = {NULL,
                          &on_stack,
                          g_memory,
                          g_memory + 1,
                          g_memory + 64 * (size_t)kMiB - 1,
                          (void*)-1,
                          (void*)(UINTPTR_MAX / 2),
                          (void*)&nonsense_is_harmless};
  for (size_t b = 0; b < sizeof begins / sizeof *begins; ++b) {
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; ++n) {
      for (size_t s = 0; s < sizeof strides / sizeof *strides; ++s) {
        for (unsigned flags = 0; flags < 16; flags += 3) say(begins[b], sizes[n], strides[s], flags | flags << 28);
      }
    }
  }
}

static void on_alarm(int signal) {
  (void)signal;
  ++g_alarms;
  say(g_memory + (size_t)g_alarms * 97 % kPages / 2 * kPage, 16 * kMiB, 8, FARHEAP_LOOP_READS);
}

int main(void) {
  check("under `farheap run` the hook is there", getenv("FARHEAP_RUN_PAGE") == NULL || &__farheap_loop != NULL);
  g_memory = aligned_alloc(kPage, 64 * (size_t)kMiB);
  check("there is memory", g_memory != NULL);
  nonsense_is_harmless(); /* before anything is paged */
  for (size_t page = 0; page < kPages; ++page) {
    const uint64_t text = word(page);
    memcpy(g_memory + page * kPage + 8 * (page % 512), &text, sizeof text);
  }
  touch_all();
  if (getenv("FARHEAP_RUN_PAGE") != NULL) {
    what_is_asked_for_comes(0, FARHEAP_LOOP_READS, 8);
    what_is_asked_for_comes(kPages / 2, FARHEAP_LOOP_WRITES, 0);
    what_is_asked_for_comes(kPages / 2, FARHEAP_LOOP_READS | FARHEAP_LOOP_BACKWARD, -8);
  }
  nonsense_is_harmless();
  touch_all();
  signal(SIGALRM, on_alarm);
  const struct itimerval often = {{0, 2000}, {0, 2000}};
  setitimer(ITIMER_REAL, &often, NULL);
  for (int turn = 0; turn < 50 && (turn < 1 || g_alarms < 50); ++turn) touch_all();
  const struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &never, NULL);
  printf("all is right\n");
  return 0;
}
