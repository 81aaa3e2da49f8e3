/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Pointers that change with each turn; loops that are left early. */
#include <stdio.h>
#include <stdlib.h>

struct node {
  struct node *next;
  long value;
};

static struct node *push(struct node *next, long value) {
  struct node *made = malloc(sizeof *made);
  made->next = next;
  made->value = value;
  return made;
}

static long find(const struct node *list, long value) {
  long at = 0;
  for (; list; list = list->next, at++) {
    if (list->value == value) return at;
    if (list->value < 0) continue;
    if (list->value > 1000) break;
  }
  return -1;
}

int main(void) {
  struct node *list = NULL;
  for (long i = 0; i < 200; i++) list = push(list, i % 3 ? i : -i);
  long sum = 0;
  for (long i = 0; i < 50; i++) sum += find(list, i);
  list->value = 5000;
  sum += find(list, 7);
  printf("%ld\n", sum);
  while (list) {
    struct node *next = list->next;
    free(list);
    list = next;
  }
  return 0;
}
