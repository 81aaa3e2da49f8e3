/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The C library's functions on strings and memory in the heap, and those that do not know of it: they are lent copies.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

static char* made(const char* text) {
  char* copy = malloc(strlen(text) + 20);
  strcpy(copy, text);
  return copy;
}

static int by_number(const void* a, const void* b) {
  return (*(const int*)a > *(const int*)b) - (*(const int*)a < *(const int*)b);
}
// Far memory that qsort_r() only hands on.
static int by_number_and_way(const void* a, const void* b, void* way) { return *(int*)way * by_number(a, b); }
static int by_text(const void* a, const void* b) { return strcmp(*(char* const*)a, *(char* const*)b); }

struct book {
  const char* name;
  int (*compare)(const char*, const char*);
  void* (*allocate)(size_t);
};
static const struct book books[] = {{"strcmp", strcmp, malloc}, {"memory", strcmp, malloc}};

static char* here(const char* in, const char* found) {
  static char text[2][32];
  static int which;
  which = !which;
  if (found == NULL) return "nowhere";
  snprintf(text[which], sizeof text[which], "at %ld", (long)(found - in));
  return text[which];
}

int main(void) {
  char *a = made("far heap"), *b = made("far from home"), *near = "near";
  printf("%s, %s, %s, %zu\n", a, b, near, strlen(a));
  printf("%d %d %d %d\n", strcmp(a, b) < 0, strncmp(a, b, 4), memcmp(a, "far heap", 9), strcmp(near, a) > 0);
  printf("%s %s %s %s\n", here(a, strchr(a, 'h')), here(a, strrchr(a, 'a')), here(a, memchr(a, 'p', 8)),
         here(a, strchr(a, 'z')));
  printf("%s %s\n", here(b, strstr(b, "home")), here(b, strpbrk(b, "xyzm")));
  strcat(a, " of ");
  strncat(a, b, 3);
  puts(a);
  strncpy(a, "short", 14);
  printf("%s %d\n", a, a[13]);
  printf("%zu %zu\n", strspn(b, "raf"), strcspn(b, "o"));
  char *copy = strdup(b), *part = strndup(b, 3);
  printf("%s|%s|%d\n", copy, part, copy != b);
  memset(copy, '*', 3);
  memmove(copy + 2, copy, 8);
  puts(copy);
  copy = realloc(copy, 5000);
  memset(copy + 14, 'x', 4900);
  copy[4914] = 0;
  printf("%.20s %zu\n", copy, strlen(copy));
  snprintf(copy, 5000, "%s and %s: %d", a, b, 42);
  puts(copy);

  char *list = made(" one, two,,three "), *rest = NULL;
  for (char* word = strtok(list, ", "); word != NULL; word = strtok(NULL, ", ")) printf("[%s]", word);
  list = made("4 5x 6");
  char** end = malloc(sizeof *end);
  long first = strtol(list, end, 10), second = strtol(*end, &rest, 10);
  printf("%ld %ld '%s' %.2f %d\n", first, second, rest, strtod(made("2.5e1"), NULL), atoi(made("77")));
  int *x = malloc(sizeof *x), *y = malloc(sizeof *y);
  *x = 0;
  printf("%d ", sscanf(made("12 of 13"), "%d of %d", x, y));
  printf("%d %d\n", *x, *y);

  int* numbers = malloc(100 * sizeof *numbers);
  for (int i = 0; i < 100; i++) numbers[i] = i * 37 % 101;
  qsort(numbers, 100, sizeof *numbers, by_number);
  int key = 50;
  int* found = bsearch(&key, numbers, 100, sizeof *numbers, by_number);
  printf("%d %d %d %ld\n", numbers[0], numbers[99], *found, (long)(found - numbers));
  char** words = malloc(4 * sizeof *words);
  words[0] = made("pear");
  words[1] = made("apple");
  words[2] = "plum";
  words[3] = made("fig");
  qsort(words, 4, sizeof *words, by_text);
  for (int i = 0; i < 4; i++) printf("%s ", words[i]);
  int* backwards = malloc(sizeof *backwards);
  *backwards = -1;
  qsort_r(numbers, 100, sizeof *numbers, by_number_and_way, backwards);
  printf("%d %d\n", numbers[0], numbers[99]);
  wchar_t* wide = malloc(32 * sizeof *wide);
  wcscpy(wide, L"wide");
  wcscat(wide, L" words");
  wchar_t* again = malloc(32 * sizeof *again);
  printf("%zu %d %ld ", wcslen(wide), wcscmp(wcsncpy(again, wide, 12), wide), (long)(wcschr(wide, L'w') - wide));
  printf("%ld %d\n", (long)(wcsstr(wide, again + 5) - wide), swprintf(again, 32, L"%ls %d", wide, *backwards));
  printf("%d\n", (int)again[11]);
  char* through = books[0].allocate(10);
  strcpy(through, "Pear");
  printf("%d %d\n", books[0].compare(through, words[2]) < 0, books[1].compare(through, "Pear"));

  double* parts = malloc(2 * sizeof *parts);
  parts[0] = modf(3.75, &parts[1]);
  printf("%.2f %.2f\n", parts[0], parts[1]);
  struct tm* when = malloc(sizeof *when);
  time_t* second_of = calloc(1, sizeof *second_of);
  gmtime_r(second_of, when);
  strftime(copy, 100, "%Y-%m-%d", when);
  puts(copy);
  int* pipes = malloc(2 * sizeof *pipes);
  if (pipe(pipes) != 0) return 1;
  if (write(pipes[1], b, 8) != 8 || read(pipes[0], a, 8) != 8) return 1;
  printf("%.8s\n", a);
  FILE* file = tmpfile();
  fprintf(file, "%s\n", b);
  rewind(file);
  printf("%s", fgets(a, 20, file));
  errno = 0;
  printf("%d %d\n", open("/nowhere/at/all", 0) == -1 ? errno == ENOENT : 0, posix_memalign((void**)end, 256, 100));
  printf("%d %d\n", (int)((size_t)*end % 256), posix_memalign((void**)end, 3, 100) == EINVAL);
  free(NULL);
  char* theirs = NULL;
  size_t size = 0;
  rewind(file);
  printf("%ld %s", (long)getline(&theirs, &size, file), theirs);
  free(theirs);
  free(copy);
  return 0;
}
