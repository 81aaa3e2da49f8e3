/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Every kind of value in the heap: whole numbers of all widths, fractions, vectors, bit-fields, structures, pointers to
 * data and to functions; by recursion, varargs, values that are passed and returned. */
#include <complex.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int vector __attribute__((vector_size(16)));
typedef double wide_vector __attribute__((vector_size(32)));

struct bits {
  unsigned a : 3;
  int b : 11;
  unsigned long c : 40;
  bool d : 1;
};

struct everything {
  int8_t i8;
  uint16_t u16;
  int32_t i32;
  uint64_t u64;
  __int128 i128;
  bool flag;
  float f;
  double d;
  long double ld;
  double complex z;
  vector v;
  wide_vector w;
  struct bits bits;
  char text[13];
  int (*call)(int);
  struct everything* next;
  union {
    uint32_t whole;
    uint8_t bytes[4];
  } u;
};

struct large {
  long numbers[9];
};
struct pair {
  double x;
  int n;
};

static int twice(int x) { return 2 * x; }
static int thrice(int x) { return 3 * x; }

__attribute__((noinline)) static long sum_of(struct large all) {
  long sum = 0;
  for (int i = 0; i < 9; i++) sum += all.numbers[i];
  all.numbers[0] = -1;
  return sum;
}

__attribute__((noinline)) static struct pair swapped(struct pair p) { return (struct pair){p.n, (int)p.x}; }

__attribute__((noinline)) static struct large filled(int from) {
  struct large made;
  for (int i = 0; i < 9; i++) made.numbers[i] = from + i;
  return made;
}

static double varied(int count, ...) {
  va_list arguments, again;
  va_start(arguments, count);
  va_copy(again, arguments);
  double sum = 0;
  for (int i = 0; i < count; i++) sum += *va_arg(arguments, double*);
  for (int i = 0; i < count; i++) sum += 100 * *va_arg(again, double*);
  va_end(again);
  va_end(arguments);
  return sum;
}

static double varied_structures(int count, ...) {
  va_list arguments;
  va_start(arguments, count);
  double sum = 0;
  for (int i = 0; i < count; i++) {
    struct large one = va_arg(arguments, struct large);
    struct pair two = va_arg(arguments, struct pair);
    sum += (double)one.numbers[8] + two.x + two.n;
  }
  va_end(arguments);
  return sum;
}

__attribute__((noinline)) static int depth(struct everything* at) { return at == NULL ? 0 : 1 + depth(at->next); }

__attribute__((noinline)) static void fill(struct everything* e, int n) {
  e->i8 = (int8_t)(-n);
  e->u16 = (uint16_t)(n * 1001);
  e->i32 = -n * 100000;
  e->u64 = (uint64_t)n << 50;
  e->i128 = ((__int128)n << 100) + n;
  e->flag = n % 2;
  e->f = (float)n / 3;
  e->d = (double)n / 7;
  e->ld = (long double)n / 9;
  e->z = n + 2 * I;
  e->v = (vector){n, n + 1, n + 2, n + 3};
  e->w = (wide_vector){n, 0.5, n * 2.0, -1};
  e->bits = (struct bits){.a = (unsigned)n, .b = -n, .c = (unsigned long)n << 30, .d = n & 1};
  snprintf(e->text, sizeof e->text, "number %d", n);
  e->call = n % 2 ? twice : thrice;
  e->u.whole = 0x01020304u * (unsigned)n;
}

static void show(const struct everything* e) {
  printf("%d %u %d %llx %llx %d %.4f %.6f %.9Lf %.2f%+.2fi\n", e->i8, e->u16, e->i32, (unsigned long long)e->u64,
         (unsigned long long)(e->i128 >> 90), e->flag, e->f, e->d, e->ld, creal(e->z), cimag(e->z));
  printf("%d %d %.2f %.2f %u %d %lx %d '%s' %d %u\n", e->v[0], e->v[3], e->w[1], e->w[2], e->bits.a, e->bits.b,
         (unsigned long)e->bits.c, e->bits.d, e->text, e->call(7), e->u.bytes[2]);
}

int main(void) {
  struct everything* first = NULL;
  for (int i = 1; i <= 4; i++) {
    struct everything* made = aligned_alloc(64, (sizeof *made + 63) / 64 * 64);
    memset(made, 0, sizeof *made);
    fill(made, i);
    made->next = first;
    first = made;
  }
  for (struct everything* at = first; at != NULL; at = at->next) show(at);
  printf("depth %d\n", depth(first));

  struct everything copy = *first, *kept = first->next;
  *first = *kept;
  first->bits.b++;
  first->bits.c += 5;
  first->v += first->v;
  first->i128 *= 3;
  show(first);
  *first = copy;
  show(first);

  struct large* large = malloc(3 * sizeof *large);
  for (int i = 0; i < 9; i++) large->numbers[i] = i * i;
  printf("by value %ld %ld\n", sum_of(*large), large->numbers[0]);
  large[1] = filled(5);
  large[2] = large[1];
  memmove(large, &large[0].numbers[1], 20 * sizeof(long));
  printf("moved %ld %ld %ld\n", large[0].numbers[0], large[1].numbers[3], sum_of(large[2]));
  struct pair* pair = malloc(sizeof *pair);
  *pair = (struct pair){2.5, 4};
  *pair = swapped(*pair);
  printf("pair %.1f %d\n", pair->x, pair->n);
  double* numbers = malloc(2 * sizeof *numbers);
  numbers[0] = 1.5;
  numbers[1] = 2.25;
  printf("varied %.2f %.2f\n", varied(2, &numbers[0], &numbers[1]),
         varied_structures(2, large[1], *pair, large[2], *pair));

  int* turns = calloc(1, sizeof *turns);
  volatile int* loud = turns;
  *loud += 4;
  printf("loud %d\n", *loud);
  free(large);
  return 0;
}
