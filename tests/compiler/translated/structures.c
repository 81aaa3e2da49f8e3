/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * structures [SEED]: a list, a tree, a table that grows and a matrix in the heap, worked on at random: what a program
 * does whose pointers lie behind pointers. Prints sums. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kSteps = 300 };

static uint64_t state;
static unsigned any(unsigned below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(state >> 33) % below;
}

struct node {
  struct node *left, *right;
  short key;
  unsigned char count;
  char name[5];
};

static struct node** place_of(struct node** at, short key) {
  while (*at != NULL && (*at)->key != key) at = key < (*at)->key ? &(*at)->left : &(*at)->right;
  return at;
}

static void insert(struct node** root, short key) {
  struct node** at = place_of(root, key);
  if (*at == NULL) {
    *at = calloc(1, sizeof **at);
    (*at)->key = key;
    memcpy((*at)->name, "node", 5);
  }
  (*at)->count++;
}

static void take(struct node** root, short key) {
  struct node **at = place_of(root, key), *gone = *at;
  if (gone == NULL || --gone->count > 0) return;
  if (gone->left == NULL || gone->right == NULL) {
    *at = gone->left != NULL ? gone->left : gone->right;
  } else {
    struct node** least = &gone->right;
    while ((*least)->left != NULL) least = &(*least)->left;
    struct node* next = *least;
    *least = next->right;
    next->left = gone->left;
    next->right = gone->right;
    *at = next;
  }
  free(gone);
}

static uint64_t walk(const struct node* at, int depth) {
  if (at == NULL) return 1;
  return walk(at->left, depth + 1) * 31 + (uint64_t)at->key * at->count + walk(at->right, depth + 1) * 17 +
         (uint64_t)(depth + at->name[2]);
}

struct link {
  struct link *next, **back;
  long value;
};

static uint64_t lists(void) {
  struct link* first = NULL;
  for (int i = 0; i < kSteps; i++) {
    if (first == NULL || any(3) != 0) {
      struct link* made = malloc(sizeof *made);
      *made = (struct link){first, &first, any(1000)};
      if (first != NULL) first->back = &made->next;
      first = made;
    } else {
      struct link* at = first;
      for (unsigned n = any(10); n > 0 && at->next != NULL; n--) at = at->next;
      *at->back = at->next;
      if (at->next != NULL) at->next->back = at->back;
      free(at);
    }
  }
  uint64_t sum = 0;
  while (first != NULL) {
    struct link* gone = first;
    sum = sum * 7 + (uint64_t)gone->value;
    first = gone->next;
    free(gone);
  }
  return sum;
}

static uint64_t tables(void) {
  size_t room = 2, count = 0;
  char** table = malloc(room * sizeof *table);
  for (int i = 0; i < kSteps / 3; i++) {
    if (count == room) table = realloc(table, (room *= 2) * sizeof *table);
    table[count] = malloc(16);
    snprintf(table[count], 16, "%u", any(100000));
    count++;
    if (any(4) == 0) {
      char* other = table[any((unsigned)count)];
      other[strlen(other) - 1] = 'x';
    }
  }
  uint64_t sum = 0;
  for (size_t i = 0; i < count; i++) {
    for (const char* at = table[i]; *at != '\0'; at++) sum = sum * 33 + (unsigned char)*at;
    free(table[i]);
  }
  free(table);
  return sum;
}

static double matrices(void) {
  int n = 6 + (int)any(4);
  double(*a)[n] = malloc(sizeof(double[n][n])), (*b)[n] = malloc(sizeof(double[n][n])),
  (*c)[n] = calloc((size_t)n, sizeof *c);
  for (int i = 0; i < n * n; i++) a[i / n][i % n] = any(10), b[i / n][i % n] = any(10);
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) {
      for (int k = 0; k < n; k++) c[i][j] += a[i][k] * b[k][j];
    }
  }
  double sum = 0;
  for (int i = 0; i < n; i++) sum += c[i][n - 1 - i] * (i + 1);
  free(a), free(b), free(c);
  return sum;
}

int main(int argc, char** argv) {
  state = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
  struct node* root = NULL;
  for (int i = 0; i < kSteps; i++) {
    if (any(3) != 0) {
      insert(&root, (short)any(60));
    } else {
      take(&root, (short)any(60));
    }
  }
  printf("%llu %llu %llu %.1f\n", (unsigned long long)walk(root, 0), (unsigned long long)lists(),
         (unsigned long long)tables(), matrices());
  return 0;
}
