/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A C program as they are: no C++ library is loaded into it. Sorts lines that it made up, by pointers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void* a, const void* b) { return strcmp(*(char* const*)a, *(char* const*)b); }

int main(void) {
  const size_t count = 450000; /* about 42 MiB: with much more, a run under 32 only waits for pages */
  char** lines = (char**)malloc(count * sizeof *lines);
  unsigned long long random = 88172645463325252ULL, sum = 0;
  if (lines == NULL) return 1;
  for (size_t i = 0; i < count; ++i) {
    char text[120];
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    snprintf(text, sizeof text, "%016llx %0*zu", random, (int)(random % 90), i);
    lines[i] = strdup(text);
    if (lines[i] == NULL) return 1;
  }
  qsort((void*)lines, count, sizeof *lines, compare);
  for (size_t i = 0; i < count; ++i) {
    for (const char* at = lines[i]; *at != '\0'; ++at) sum = sum * 31 + (unsigned char)*at;
    if (i > 0 && strcmp(lines[i - 1], lines[i]) > 0) return 2;
  }
  printf("%s\n%s\n%llu\n", lines[0], lines[count - 1], sum);
  for (size_t i = 0; i < count; ++i) free(lines[i]);
  free((void*)lines);
  return 0;
}
