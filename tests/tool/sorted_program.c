// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program whose small objects are to be sorted by a plan: sorted_program MIB STEPS MODE. It has MIB of records, each
// an entry and five values of the same size that are allocated one behind the other, and prints what it has computed.
//
//   mixed    in each step looks at the entry of any record, and in one of 16 at a value of it
//   aligned  mixed, with entries that are aligned
//   phases   every second object of a record is made as entries are; looks at these for a while, then at the others
//   alike    in each step looks at the entry of any record, and at a value of it
//   churn    mixed; then frees every second record, makes as many other objects, and looks again
//   grow     mixed; then lets some entries grow beyond what is small, and looks again
//   exit     makes and frees records, until a handler of a signal ends it after STEPS microseconds
//   fork     mixed; then a child, and the parent beside it, free what they had and make it anew
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kWords = 12, kAlignment = 32, kValues = 5, kOtherBytes = 90, kLargeBytes = 40000 };

typedef struct {
  uint64_t* entry;
  uint64_t* values[kValues];
} Record;

static size_t g_count;
static Record* g_records;
static int g_aligned, g_phases;

static uint64_t mixed(uint64_t value, uint64_t word) {
  value = (value ^ word) * 0xd6e8feb86659fd93u;
  return value ^ value >> 32;
}

__attribute__((noinline)) static uint64_t* make_entry(void) {
  if (g_aligned) return aligned_alloc(kAlignment, kWords * sizeof(uint64_t));
  return malloc(kWords * sizeof(uint64_t));  // MARK entry
}

__attribute__((noinline)) static uint64_t* make_value(void) {
  return calloc(kWords, sizeof(uint64_t));  // MARK value
}

__attribute__((noinline)) static void* make_other(void) {
  return malloc(kOtherBytes);  // MARK other
}

static void make_record(size_t i) {
  Record* const record = &g_records[i];
  record->entry = make_entry();
  if (record->entry == NULL) exit(3);
  for (int k = 0; k < kWords; ++k) record->entry[k] = mixed(i, (uint64_t)k);
  for (int v = 0; v < kValues; ++v) {
    const int is_as_entries = g_phases && v % 2 != 0;
    record->values[v] = is_as_entries ? make_entry() : make_value();
    if (record->values[v] == NULL) exit(3);
    if (is_as_entries) memset(record->values[v], 0, kWords * sizeof(uint64_t));
    for (int k = 0; k < kWords; ++k) record->values[v][k] += mixed(~i, (uint64_t)(k + v));
  }
}

static void free_record(size_t i) {
  free(g_records[i].entry);
  g_records[i].entry = NULL;
  for (int v = 0; v < kValues; ++v) free(g_records[i].values[v]);
}

static uint64_t look(uint64_t steps, unsigned one_value_in, uint64_t sum) {
  uint64_t random = 1;
  for (uint64_t step = 0; step < steps; ++step) {
    random = mixed(random, step);
    const size_t i = (size_t)(random % g_count);
    if (g_records[i].entry == NULL) continue;
    sum = mixed(sum, g_records[i].entry[random >> 8 & 3]);
    if (random % 4096 < 4096 / one_value_in) sum = mixed(sum, g_records[i].values[random >> 32 & 3][random >> 16 & 7]);
  }
  return sum;
}

static uint64_t look_in_phases(uint64_t steps, uint64_t sum) {
  enum { kPhases = 2 };
  uint64_t random = 1;
  for (uint64_t step = 0; step < steps; ++step) {
    random = mixed(random, step);
    const Record* const record = &g_records[random % g_count];
    const size_t v = (size_t)(random >> 40) % (kValues / 2 + 1) * 2;  // 0, 2, 4
    const int is_of_entries = step * kPhases / steps % 2 == 0;
    const uint64_t* const object = !is_of_entries ? record->values[v] : v == 0 ? record->entry : record->values[v - 1];
    sum = mixed(sum, object[random >> 8 & 7]);
  }
  return sum;
}

static uint64_t churn(uint64_t sum) {
  for (size_t i = 0; i < g_count; i += 2) free_record(i);
  for (size_t i = 0; i < g_count; ++i) {
    char* const other = make_other();
    if (other == NULL) exit(3);
    memset(other, (int)i, kOtherBytes);
    sum = mixed(sum, (uint64_t)other[i % kOtherBytes]);
  }
  return sum;
}

static void grow(void) {
  for (size_t i = 0; i < g_count; i += 128) {
    g_records[i].entry = realloc(g_records[i].entry, i % 256 == 0 ? kLargeBytes : 200);
    if (g_records[i].entry == NULL) exit(3);
    memset(g_records[i].entry + kWords, 0x5a, 200 - kWords * sizeof(uint64_t));
  }
}

static void renew(size_t first) {
  for (size_t i = first; i < g_count; i += 2) {
    free_record(i);
    make_record(i);
  }
}

static void end_now(int signal) { _exit(signal == SIGALRM ? 0 : 6); }

static void work_until_signal(uint64_t microseconds) {
  const struct itimerval when = {.it_value = {.tv_sec = 0, .tv_usec = (suseconds_t)microseconds}};
  signal(SIGALRM, end_now);
  if (setitimer(ITIMER_REAL, &when, NULL) != 0) exit(7);
  for (size_t i = 0;; i = (i + 1) % g_count) {
    free_record(i);
    make_record(i);
  }
}

int main(int count, char** words) {
  if (count != 4) return 2;
  const size_t bytes = strtoull(words[1], NULL, 10) << 20;
  const uint64_t steps = strtoull(words[2], NULL, 10);
  const char* const mode = words[3];
  g_aligned = strcmp(mode, "aligned") == 0;
  g_phases = strcmp(mode, "phases") == 0;
  g_count = bytes / ((1 + kValues) * kWords * sizeof(uint64_t));
  g_records = malloc(g_count * sizeof(Record));
  if (g_records == NULL) return 3;
  for (size_t i = 0; i < g_count; ++i) make_record(i);
  if (strcmp(mode, "exit") == 0) work_until_signal(steps);
  const unsigned one_value_in = strcmp(mode, "alike") == 0 ? 1 : 16;
  uint64_t sum = g_phases ? look_in_phases(steps, 1) : look(steps, one_value_in, 1);
  if (strcmp(mode, "churn") == 0) sum = look(steps, one_value_in, churn(sum));
  if (strcmp(mode, "grow") == 0) {
    grow();
    sum = look(steps, one_value_in, sum);
  }
  if (strcmp(mode, "fork") == 0) {
    const pid_t child = fork();
    if (child < 0) return 4;
    renew(child == 0 ? 0 : 1);
    sum = look(steps, one_value_in, sum);
    if (child == 0) {
      printf("child %016llx\n", (unsigned long long)sum);
      return 0;
    }
    int status = 1;
    if (waitpid(child, &status, 0) != child || status != 0) return 5;
  }
  printf("%016llx\n", (unsigned long long)sum);
  return 0;
}
