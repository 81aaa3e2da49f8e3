/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program to be watched:
 *
 *   watched_program MEBIBYTES PASSES [fork]
 *
 * Fills memory and goes over it in passes, writing a part of it; says "ready", waits for the end of its input, and
 * ends. With `fork`, a child goes over its own copy, too, before the parent says so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kPage = 4096 };

static unsigned long go_over(unsigned char* memory, size_t bytes, long passes) {
  unsigned long sum = 0;
  for (long pass = 0; pass < passes; ++pass) {
    for (size_t at = 0; at < bytes; at += kPage) {
      sum += memory[at];
      if (at / kPage % 3 == 0) memory[at] = (unsigned char)(pass + 1);
    }
  }
  return sum;
}

static void wait_for_end_of_input(void) {
  char word[16];
  while (read(STDIN_FILENO, word, sizeof word) > 0) {
  }
}

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const size_t bytes = strtoul(arguments[1], NULL, 10) << 20;
  const long passes = strtol(arguments[2], NULL, 10);
  unsigned char* const memory = malloc(bytes);
  if (memory == NULL) return 2;
  for (size_t at = 0; at < bytes; at += kPage) memset(memory + at, (int)(at / kPage % 200) + 1, kPage);
  unsigned long sum = go_over(memory, bytes, passes);
  int ready[2];
  if (pipe(ready) != 0) return 2;
  const pid_t child = count > 3 ? fork() : -1;
  if (child == 0) {
    sum += go_over(memory, bytes, passes);
    if (write(ready[1], "x", 1) != 1) return 2;
    wait_for_end_of_input();
    _exit(sum == 0);
  }
  char word;
  if (child > 0 && read(ready[0], &word, 1) != 1) return 2;
  printf("ready\n");
  fflush(stdout);
  wait_for_end_of_input();
  if (child > 0) waitpid(child, NULL, 0);
  return sum == 0;
}
