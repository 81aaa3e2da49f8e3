/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What is on the stack and in global variables, in every way that a program has to say so. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kDeep = 2000, kThreads = 4, kTurns = 200 };

struct node {
  struct node* next;
  int value;
  char name[12];
};

int shared = 7;
static int zero[300];
static struct node third = {NULL, 3, "third"}, second = {&third, 2, "second"};
struct node first = {&second, 1, "first"};
int* const pointer_to_shared = &shared;
static int* table[] = {&shared, &zero[17], NULL};
static char* inside = (char*)&zero[20] + 2;
char text[] = "changed";
extern FILE* stdout;
static jmp_buf global_jump;
static const int kept = 40;
static const int* const to_kept = &kept;

struct large {
  long values[40];
};

__attribute__((noinline)) static long sum(struct large large) {
  long result = 0;
  for (int i = 0; i < 40; i++) {
    large.values[i] += i;
    result += large.values[i];
  }
  return result;
}

__attribute__((noinline)) static struct large make(long begin) {
  struct large made;
  for (int i = 0; i < 40; i++) made.values[i] = begin + i;
  return made;
}

__attribute__((noinline)) static int deep(int left, int* above) {
  int here[10];
  for (int i = 0; i < 10; i++) here[i] = left + i;
  int below = left == 0 ? 0 : deep(left - 1, &here[3]);
  return (below + *above + here[9]) & 0xffff;
}

__attribute__((noinline)) static int dynamic(int count) {
  int total = 0;
  for (int turn = 1; turn <= count; turn++) {
    int many[turn];
    memset(many, 0, sizeof many);
    for (int i = 0; i < turn; i++) many[i] += i * turn;
    char* more = __builtin_alloca(turn + 3);
    memset(more, turn, turn + 3);
    total += many[turn - 1] + more[turn + 2];
  }
  return total;
}

static int add(int count, ...) {
  va_list all, again;
  va_start(all, count);
  va_copy(again, all);
  double total = 0;
  for (int i = 0; i < count; i++) total += va_arg(all, int) + va_arg(all, double);
  for (int i = 0; i < count; i++) total += va_arg(again, int);
  va_end(again);
  va_end(all);
  return (int)total;
}

static void say(const char* format, ...) {
  char line[200];
  va_list all;
  va_start(all, format);
  vsnprintf(line, sizeof line, format, all);
  va_end(all);
  fputs(line, stdout);
}

__attribute__((noinline)) static void jump(jmp_buf* to, int deep_down) {
  volatile char lost[500];
  memset((char*)lost, deep_down, sizeof lost);
  if (deep_down == 0) longjmp(*to, 5);
  jump(to, deep_down - 1);
  lost[3] = 1;
}

__attribute__((noinline)) static int jumps(void) {
  jmp_buf here;
  volatile int turns = 0;
  volatile int own[20] = {0};
  int result = setjmp(here);
  own[turns] = result + 1;
  if (++turns < 12) jump(&here, turns * 20);
  int total = 0;
  for (int i = 0; i < 20; i++) total += own[i];
  if (setjmp(global_jump) == 0) {
    int count = 10 + turns;
    volatile int many[count];
    many[count - 1] = 3;
    jump(&global_jump, many[count - 1]);
  }
  return total + turns;
}

/* What was left on the stack is not there the next time. */
static const volatile char* deepest;
__attribute__((noinline)) static void jump_from(jmp_buf* to, int deep_down) {
  volatile char lost[300];
  lost[deep_down] = 1;
  deepest = lost;
  if (deep_down == 0) longjmp(*to, 1);
  jump_from(to, deep_down - 1);
  lost[0] = 2;
}

__attribute__((noinline)) static int moved_by_jumps(int times) {
  const volatile char* volatile first_time = NULL;
  volatile int moved = 0;
  for (volatile int i = 0; i < times; i++) {
    jmp_buf here;
    if (setjmp(here) == 0) jump_from(&here, 30);
    if (first_time == NULL) first_time = deepest;
    moved += first_time != deepest;
  }
  return moved;
}

__attribute__((noinline)) static int moved_by_turns(int times) {
  int moved = 0;
  volatile char* first_time = NULL;
  for (int i = 0; i < times; i++) {
    volatile char many[times + 100];
    many[times] = 1;
    if (first_time == NULL) first_time = many;
    moved += first_time != many;
  }
  return moved;
}

/* Strings and numbers of every kind, in registers and behind them; all that is far among them has to be copied. */
static void list(const char* format, ...) {
  static char own[300];
  char line[300], *made = NULL;
  va_list all, again;
  va_start(all, format);
  va_copy(again, all);
  const int bytes = vsnprintf(line, sizeof line, format, all);
  va_end(all);
  vsnprintf(own, 10, format, again);
  va_end(again);
  va_start(all, format);
  const int other = vasprintf(&made, format, all);
  va_end(all);
  printf("%d %d %s%s\n%s", bytes, other, line, own, made);
  free(made);
  va_start(all, format);
  vprintf(format, all);
  va_end(all);
}

static int by_name(const void* a, const void* b) {
  return strcmp((*(struct node* const*)a)->name, (*(struct node* const*)b)->name);
}

static __thread int own_of_thread = 4;
static long added;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void* work(void* arg) {
  int mine[50];
  for (int turn = 0; turn < kTurns; turn++) {
    for (int i = 0; i < 50; i++) mine[i] = turn + i + *(int*)arg;
    pthread_mutex_lock(&lock);
    added += mine[turn % 50];
    pthread_mutex_unlock(&lock);
    __atomic_fetch_add(&zero[200], 1, __ATOMIC_RELAXED);
    own_of_thread += deep(20, &mine[4]) & 1;
  }
  return NULL;
}

__attribute__((constructor)) static void before_main(void) { zero[5] = shared; }

int main(int argc, char** argv) {
  (void)argv;
  printf("%d %d %s\n", zero[5], *pointer_to_shared, text);
  shared = 8 + argc - 1;
  memcpy(text, "CH", 2);
  *table[1] = 6;
  printf("%d %d %d %s %d %d\n", *pointer_to_shared, *table[0], zero[17], text, (int)(inside - (char*)zero), *to_kept);
  for (struct node* at = &first; at != NULL; at = at->next) printf("%s %d\n", at->name, at->value);
  struct node* sorted[] = {&third, &first, &second};
  qsort(sorted, 3, sizeof *sorted, by_name);
  printf("%s %s %s\n", sorted[0]->name, sorted[1]->name, sorted[2]->name);
  struct large large = make(shared);
  say("%ld %ld %ld\n", sum(large), large.values[39], sum(make(2)));
  int begin = 3;
  say("%d\n", deep(kDeep, &begin));
  say("%d %d\n", dynamic(70), add(3, 1, 2.5, 3, 4.5, 5, 6.5));
  say("%d %d %d\n", jumps(), moved_by_jumps(300), moved_by_turns(300));
  char* heap_format = strdup("%s %5.2f %d %Lg %s %*d %c %s %ld %.3s %g %g %g %g %g %g %g %g %s %%\n");
  char unended[3] = {'a', 'b', 'c'};
  list(heap_format, first.name, 2.5, 3, 4.5L, text, 6, 7, 'x', heap_format + 60, 8L, unended, 1.5, 2.5, 3.5, 4.5, 5.5,
       6.5, 7.5, 8.5, third.name);
  list("%2$s %1$d %3$s\n", 12, second.name, (char*)"near");
  pthread_t threads[kThreads];
  int numbers[kThreads];
  for (int i = 0; i < kThreads; i++) {
    numbers[i] = i;
    pthread_create(&threads[i], NULL, work, &numbers[i]);
  }
  for (int i = 0; i < kThreads; i++) pthread_join(threads[i], NULL);
  say("%ld %d %d\n", added, zero[200], own_of_thread);
  int a = 0, b = 0;
  char word[20];
  say("%d", sscanf("12 and 30", "%d %19s %d", &a, word, &b));
  printf(" %d %s %d\n", a, word, b);
  return 0;
}
