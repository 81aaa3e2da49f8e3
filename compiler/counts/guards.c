/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Linked by `farcc -ffar=guard -ffar-guard=record` to a program or shared library: adds when it ends how often its
 * guards were passed and found a page away to the file of $FARCC_GUARDS (docs/formats.md, "Guard profiles").
 * compiler/passes/guard_profile.cpp makes the records, and reads the file.
 *
 * Thread-safety: threads that still run count on while the records are written; what they count then is lost. */
#define _GNU_SOURCE /* secure_getenv() */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "append_file.h"

static const char kUsualFile[] = "farheap-guards.txt";
static const char kFormat[] = "farheap guards 2\n";

struct farheap_guard_record {
  const char* name;
  uint64_t guards; /* 0: a file without any */
  uint64_t shape;
  uint64_t (*counters)[2]; /* passes, misses */
  const void* writer;
};

/* The linker puts these around the section of that name. Weak: it may be that there is no guard.
 * NOLINTBEGIN(bugprone-reserved-identifier): the names are the linker's. */
extern struct farheap_guard_record __start_farheap_guards[] __attribute__((weak, visibility("hidden")));
extern struct farheap_guard_record __stop_farheap_guards[] __attribute__((weak, visibility("hidden")));
/* What the records refer to, so that a program that counts and is linked without this is an error, which says why. */
extern const char __farheap_link_with_ffar_guard_record __attribute__((visibility("hidden")));
const char __farheap_link_with_ffar_guard_record = 1;
/* NOLINTEND(bugprone-reserved-identifier) */

/* What the parent counted is the parent's to write. */
static void begin_anew(void) {
  for (struct farheap_guard_record* at = __start_farheap_guards; at != __stop_farheap_guards; ++at) {
    if (at->guards != 0) memset(at->counters, 0, at->guards * sizeof at->counters[0]);
  }
}

__attribute__((constructor)) static void begin(void) { pthread_atfork(NULL, NULL, begin_anew); }

static void complain(const char* name, const char* why, const char* remedy) {
  fprintf(stderr, "farheap: cannot write the profile of guards to '%s': %s; %s\n", name, why, remedy);
}

static void print(FILE* to, const struct farheap_guard_record* record) {
  for (uint64_t i = 0; i < record->guards; ++i) {
    fprintf(to, "%llu %llu %016llx %llu %llu %s\n", (unsigned long long)i, (unsigned long long)record->guards,
            (unsigned long long)record->shape, (unsigned long long)record->counters[i][0],
            (unsigned long long)record->counters[i][1], record->name);
  }
}

/* All of a run, for free(); NULL, with errno, if there is no memory for it. It begins a line of its own where the one
 * before it was cut, and its last line says that it is whole. */
static char* text_of_all(int begins_a_line, size_t* length) {
  char* text = NULL;
  FILE* to = open_memstream(&text, length);
  if (to == NULL) return NULL;
  fprintf(to, "%s%s", begins_a_line ? "" : "\n", kFormat);
  for (const struct farheap_guard_record* at = __start_farheap_guards; at != __stop_farheap_guards; ++at) print(to, at);
  fputs("end\n", to);
  const int failed = ferror(to);
  if (fclose(to) == 0 && !failed) return text;
  free(text);
  return NULL;
}

/* One write, so that runs that end at the same time do not mix: it is more only where a disk is full. */
static int write_all(int to, const char* text, size_t length) {
  while (length != 0) {
    const ssize_t written = write(to, text, length);
    if (written < 0 && errno != EINTR) return -1;
    if (written > 0) text += written, length -= (size_t)written;
  }
  return 0;
}

/* Why a run cannot be added to what is there; NULL if it can. A pipe or a terminal takes anything. */
static const char* refusal(const char* name, int* begins_a_line) {
  char first[sizeof kFormat - 1] = {0};
  char last = '\n';
  struct stat facts;
  *begins_a_line = 1;
  if (stat(name, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size == 0) return NULL;
  const int from = open(name, O_RDONLY | O_CLOEXEC);
  if (from < 0) return strerror(errno);
  const ssize_t got = pread(from, first, sizeof first, 0);
  const ssize_t end = pread(from, &last, 1, facts.st_size - 1);
  close(from);
  if (got < 0 || end < 0) return strerror(errno);
  *begins_a_line = last == '\n';
  if (got == (ssize_t)sizeof first && memcmp(first, kFormat, sizeof first) == 0) return NULL;
  if (got >= 15 && memcmp(first, kFormat, 15) == 0) return "the profile in it is of another version of Farheap";
  return "there is something else in it, which is no profile of guards";
}

static void write_profile(const char* name) {
  int begins_a_line;
  const char* const why_not = refusal(name, &begins_a_line);
  if (why_not != NULL) {
    complain(name, why_not, "name another file by FARCC_GUARDS, or remove this one");
    return;
  }
  size_t length = 0;
  char* const text = text_of_all(begins_a_line, &length);
  const int to = text == NULL ? -1 : farheap_open_to_append(name);
  if (to < 0 || write_all(to, text, length) != 0) complain(name, strerror(errno), "name another file by FARCC_GUARDS");
  if (to >= 0) close(to);
  free(text);
}

__attribute__((destructor)) static void end(void) {
  const char* name = secure_getenv("FARCC_GUARDS");
  if (name == NULL || *name == '\0') name = kUsualFile;
  const struct farheap_guard_record* const none = __stop_farheap_guards;
  if (none == __start_farheap_guards) {
    complain(name, "nothing in the program or library was compiled to count its guards",
             "give -ffar=guard -ffar-guard=record when compiling, too");
    return;
  }
  for (const struct farheap_guard_record* at = __start_farheap_guards; at != none; ++at) {
    if (at->guards == 0) continue;
    write_profile(name);
    return;
  }
}
