// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// OpenMP: tasks that sort, that wait for one another, that are made by loops, and that walk a list and a tree in the
// heap. Its argument: MiB of arrays and nodes.
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void merge(const uint32_t* a, long na, const uint32_t* b, long nb, uint32_t* into) {
  long i = 0, j = 0;
  while (i < na && j < nb) *into++ = a[i] <= b[j] ? a[i++] : b[j++];
  memcpy(into, a + i, (size_t)(na - i) * sizeof *a);
  memcpy(into + (na - i), b + j, (size_t)(nb - j) * sizeof *b);
}

static int compare(const void* a, const void* b) {
  const uint32_t x = *(const uint32_t*)a, y = *(const uint32_t*)b;
  return (x > y) - (x < y);
}

static void sort(uint32_t* a, long n, uint32_t* room) {
  if (n <= 4096) {
    qsort(a, (size_t)n, sizeof *a, compare);
    return;
  }
  const long half = n / 2;
#pragma omp task firstprivate(a, half, room) final(n < 65536)
  sort(a, half, room);
#pragma omp task
  sort(a + half, n - half, room + half);
#pragma omp taskwait
  merge(a, half, a + half, n - half, room);
  memcpy(a, room, (size_t)n * sizeof *a);
}

static void sorted(size_t bytes) {
  const long n = (long)(bytes / (2 * sizeof(uint32_t)));
  uint32_t *a = malloc((size_t)n * sizeof *a), *room = malloc((size_t)n * sizeof *room);
  for (long i = 0; i < n; i++) a[i] = (uint32_t)((uint64_t)i * 2654435761u);
#pragma omp parallel
#pragma omp single
  sort(a, n, room);
  long wrong = 0;
  uint64_t sum = 0;
  for (long i = 0; i < n; i++) wrong += i > 0 && a[i - 1] > a[i], sum = sum * 31 + a[i];
  printf("sorted %ld %llu\n", wrong, (unsigned long long)sum);
  free(a), free(room);
}

struct Node {
  struct Node *left, *right, *next;
  uint64_t key, sum;
  char payload[88];
};

static struct Node* tree(long n, uint64_t key, struct Node** last) {
  if (n == 0) return NULL;
  struct Node* node = calloc(1, sizeof *node);
  node->key = key;
  snprintf(node->payload, sizeof node->payload, "node %llu", (unsigned long long)key);
  (*last)->next = node;
  *last = node;
  node->left = tree((n - 1) / 2, key * 3 + 1, last);
  node->right = tree(n - 1 - (n - 1) / 2, key * 5 + 2, last);
  return node;
}

static uint64_t sum_of(struct Node* node, int depth) {
  if (node == NULL) return 1;
  uint64_t left = 0, right = 0;
#pragma omp task shared(left) if (depth < 6)
  left = sum_of(node->left, depth + 1);
#pragma omp task shared(right) if (depth < 6)
  right = sum_of(node->right, depth + 1);
#pragma omp taskwait
  node->sum = node->key + 3 * left + 5 * right + strlen(node->payload);
  return node->sum;
}

static void nodes(size_t bytes) {
  struct Node head = {0}, *last = &head;
  struct Node* root = tree((long)(bytes / sizeof(struct Node)), 1, &last);
  uint64_t sum = 0;
#pragma omp parallel
#pragma omp single
  sum = sum_of(root, 0);
  // A task for each stretch of the list.
  uint64_t along = 0;
#pragma omp parallel
#pragma omp single
  {
    struct Node* from = head.next;
    while (from != NULL) {
      struct Node* to = from;
      for (int i = 0; i < 5000 && to != NULL; i++) to = to->next;
#pragma omp task firstprivate(from, to)
      {
        uint64_t mine = 0;
        for (struct Node* at = from; at != to; at = at->next) mine += at->sum % 1000003 + (unsigned char)at->payload[6];
#pragma omp atomic
        along += mine;
      }
      from = to;
    }
  }
  printf("nodes %llu %llu\n", (unsigned long long)sum, (unsigned long long)along);
  for (struct Node* at = head.next; at != NULL;) {
    struct Node* next = at->next;
    free(at);
    at = next;
  }
}

static void wavefront(void) {
  enum { kSide = 24 };
  uint64_t(*cells)[kSide] = calloc(kSide, sizeof *cells);
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < kSide; i++) {
    for (int j = 0; j < kSide; j++) {
#pragma omp task depend(in : cells[i > 0 ? i - 1 : i][j], cells[i][j > 0 ? j - 1 : j]) depend(out : cells[i][j])
      cells[i][j] = (i > 0 ? cells[i - 1][j] : 1) * 3 + (j > 0 ? cells[i][j - 1] : 1) * 5 + 1;
    }
  }
  printf("wavefront %llu\n", (unsigned long long)cells[kSide - 1][kSide - 1]);
  free(cells);
}

static void loops_of_tasks(long n) {
  uint64_t sum = 0;
  long* a = calloc((size_t)n, sizeof *a);
#pragma omp parallel
#pragma omp single
  {
#pragma omp taskloop grainsize(1000)
    for (long i = 0; i < n; i++) a[i] = i * 7;
#pragma omp taskgroup task_reduction(+ : sum)
    {
#pragma omp taskloop num_tasks(8) in_reduction(+ : sum)
      for (long i = 0; i < n; i++) sum += (uint64_t)a[i];
    }
  }
  printf("loops of tasks %llu\n", (unsigned long long)sum);
  free(a);
}

int main(int argc, char** argv) {
  const size_t bytes = (argc > 1 ? (size_t)atol(argv[1]) : 1) << 20;
  omp_set_dynamic(0);
  omp_set_num_threads(3);
  sorted(bytes);
  nodes(bytes);
  wavefront();
  loops_of_tasks(20000);
  return 0;
}
