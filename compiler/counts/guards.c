/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Linked by `farcc -ffar=guard -ffar-guard=record` to a program or shared library: adds when it ends how often its
 * guards were passed and found a page away to the file of $FARCC_GUARDS (docs/formats.md, "Guard profiles").
 * compiler/passes/guard_profile.cpp makes the records, and reads the file.
 *
 * Thread-safety: threads that still run count on while the records are written; what they count then is lost. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char kUsualFile[] = "farheap-guards.txt";

struct farheap_guard_record {
  const char* name;
  uint64_t guards;
  uint64_t (*counters)[2]; /* passes, misses */
};

/* The linker puts these around the section of that name. Weak: it may be that there is no guard.
 * NOLINTBEGIN(bugprone-reserved-identifier): the names are the linker's. */
extern struct farheap_guard_record __start_farheap_guards[] __attribute__((weak, visibility("hidden")));
extern struct farheap_guard_record __stop_farheap_guards[] __attribute__((weak, visibility("hidden")));
/* NOLINTEND(bugprone-reserved-identifier) */

/* What the parent counted is the parent's to write. */
static void begin_anew(void) {
  for (struct farheap_guard_record* at = __start_farheap_guards; at != __stop_farheap_guards; ++at) {
    memset(at->counters, 0, at->guards * sizeof at->counters[0]);
  }
}

__attribute__((constructor)) static void begin(void) { pthread_atfork(NULL, NULL, begin_anew); }

static int write_all(int to) {
  if (dprintf(to, "farheap guards 1\n") < 0) return -1;
  for (const struct farheap_guard_record* at = __start_farheap_guards; at != __stop_farheap_guards; ++at) {
    for (uint64_t i = 0; i < at->guards; ++i) {
      /* A line is one write, so that those of programs that end at the same time do not mix. */
      if (dprintf(to, "%llu %llu %llu %llu %s\n", (unsigned long long)i, (unsigned long long)at->guards,
                  (unsigned long long)at->counters[i][0], (unsigned long long)at->counters[i][1], at->name) < 0) {
        return -1;
      }
    }
  }
  return 0;
}

__attribute__((destructor)) static void end(void) {
  const char* name = getenv("FARCC_GUARDS");
  if (name == NULL || *name == '\0') name = kUsualFile;
  const struct farheap_guard_record* const none = __stop_farheap_guards;
  if (none == __start_farheap_guards) return;
  const int to = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (to < 0 || write_all(to) != 0) {
    fprintf(stderr, "farheap: cannot write the profile of guards to '%s': %s; name another file by FARCC_GUARDS\n",
            name, strerror(errno));
  }
  if (to >= 0) close(to);
}
