// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program to be planned: planned_program MIB ROUNDS MODE. It has an array of MIB and another one of half of it, each
// allocated at a line of its own, and prints what it has computed.
//
//   sweeps   fills both, and then in each round goes forwards through the first and backwards through the second
//   stages   as sweeps, and then as many rounds backwards through the first alone
//   turned   the same, the second part first
//   across   fills both, and then in each round goes forwards through the first and across all planes of it
//   random   uses as many pages of the first, one of them drawn after the other
//   fork     sweeps, in the parent and in a child, each with its own copy of what was filled before
//   little   sweeps over a few pages
//
// It computes a while on each page, as programs do that are worth a plan: the sample of their pages is not seen at
// once.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kWords = 512, kTimes = 24 };  // of a page; that each of them is mixed in
enum { kPlanes = 64 };               // of the first array, one behind the other

typedef uint64_t Page[kWords];

static size_t g_pages;
static Page* g_first;
static Page* g_second;

static uint64_t mixed(uint64_t value, uint64_t word) {
  value = (value ^ word) * 0xd6e8feb86659fd93u;
  return value ^ value >> 32;
}

__attribute__((noinline)) static Page* make_first(size_t pages) {
  return malloc(pages * sizeof(Page));  // MARK first
}

__attribute__((noinline)) static Page* make_second(size_t pages) {
  return malloc(pages * sizeof(Page));  // MARK second
}

static void fill(Page* page, uint64_t seed) {
  for (int i = 0; i < kWords; ++i) (*page)[i] = mixed(seed, (uint64_t)i);
}

static uint64_t use(Page* page, uint64_t sum) {
  for (int k = 0; k < kTimes; ++k) {
    for (int i = 0; i < kWords; ++i) sum = mixed(sum, (*page)[i]);
  }
  (*page)[sum % kWords] += sum;
  return sum;
}

static void prepare(void) {
  g_first = make_first(g_pages);
  g_second = make_second(g_pages / 2);
  if (g_first == NULL || g_second == NULL) exit(3);
  for (size_t i = 0; i < g_pages; ++i) fill(&g_first[i], i);
  for (size_t i = 0; i < g_pages / 2; ++i) fill(&g_second[i], ~i);
}

static uint64_t sweeps(int rounds, uint64_t sum) {
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < g_pages; ++i) sum = use(&g_first[i], sum);
    for (size_t i = g_pages / 2; i-- > 0;) sum = use(&g_second[i], sum);
  }
  return sum;
}

static uint64_t back_sweeps(int rounds, uint64_t sum) {
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = g_pages; i-- > 0;) sum = use(&g_first[i], sum);
  }
  return sum;
}

static uint64_t across(int rounds, uint64_t sum) {
  const size_t pages = g_pages / kPlanes;
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < g_pages; ++i) sum = use(&g_first[i], sum);
    for (size_t i = 0; i < g_pages; ++i) sum = use(&g_first[i % kPlanes * pages + i / kPlanes], sum);
  }
  return sum;
}

static uint64_t draws(int rounds, uint64_t sum) {
  for (size_t i = 0; i < g_pages * (size_t)rounds; ++i) sum = use(&g_first[sum % g_pages], sum);
  return sum;
}

static uint64_t work(const char* mode, int rounds, uint64_t sum) {
  if (strcmp(mode, "random") == 0) return draws(rounds, sum);
  if (strcmp(mode, "across") == 0) return across(rounds, sum);
  if (strcmp(mode, "stages") == 0) return back_sweeps(rounds, sweeps(rounds, sum));
  if (strcmp(mode, "turned") == 0) return sweeps(rounds, back_sweeps(rounds, sum));
  return sweeps(rounds, sum);
}

int main(int count, char** arguments) {
  if (count < 4) return 2;
  const char* mode = arguments[3];
  const int rounds = atoi(arguments[2]);
  g_pages = strcmp(mode, "little") == 0 ? 16 : (size_t)atol(arguments[1]) * 256;
  int status = 0;
  pid_t child = -1;
  prepare();
  if (strcmp(mode, "fork") == 0) child = fork();
  const uint64_t sum = work(mode, rounds, child == 0 ? 7 : 1);
  if (child > 0) waitpid(child, &status, 0);
  printf("%s %016lx\n", child == 0 ? "child" : "program", (unsigned long)sum);
  return status != 0;
}
