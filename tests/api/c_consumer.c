/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program in plain C11 that uses all of the C interface to heaps: it compiles without a word with -Wpedantic, and
 * prints "ok" when each call did what the header says.
 */
#include <farheap/farheap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect(int right, const char* what) {
  if (right) return;
  fprintf(stderr, "%s\n%s\n", what, farheap_last_error());
  exit(1);
}
#define EXPECT(right) expect(right, #right)

typedef struct node {
  struct node* next;
  int value;
} node;

static int count_objects(void* context, const farheap_object* object) {
  if (object->kind == FARHEAP_NAMED && object->bytes != 0) ++*(int*)context;
  return 0;
}

static int is_monday(void* context, const farheap_version* version) {
  (void)context;
  return strcmp(version->name, "monday") == 0 ? 1 : 0;
}

static void make(const char* uri) {
  farheap_options options = {sizeof options, 64u << 20, 1u << 30, 0};
  farheap_heap* heap = farheap_heap_open_with(uri, FARHEAP_CREATE, &options);
  EXPECT(heap != NULL);
  node** list = farheap_heap_construct(heap, "list", sizeof *list);
  EXPECT(list != NULL && *list == NULL);
  for (int value = 0; value < 1000; ++value) {
    node* one = farheap_heap_allocate(heap, sizeof *one, 64);
    EXPECT(one != NULL && farheap_heap_owns(heap, one));
    one->next = *list;
    one->value = value;
    *list = one;
  }
  EXPECT(farheap_heap_describe(heap, list, "a list of numbers") == FARHEAP_DONE);
  EXPECT(farheap_heap_snapshot(heap, "monday") == FARHEAP_DONE);
  farheap_pause* pause = farheap_heap_pause(heap);
  EXPECT(pause != NULL);
  node* first = *list;
  *list = first->next;
  farheap_heap_deallocate(heap, first);
  farheap_heap_resume(pause);
  EXPECT(farheap_heap_named(heap, "more", 10) != NULL);
  EXPECT(farheap_heap_commit(heap) == FARHEAP_DONE);
  int objects = 0;
  EXPECT(farheap_heap_for_each(heap, count_objects, &objects) == 0 && objects == 2);
  EXPECT(farheap_heap_for_each_version(heap, is_monday, NULL) == 1);
  farheap_statistics statistics = {sizeof statistics, 0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT(farheap_heap_statistics(heap, &statistics) == FARHEAP_DONE && statistics.objects == 2);
  farheap_heap_close(heap);
}

static int sum(const char* uri, int expected) {
  farheap_heap* heap = farheap_heap_open(uri, FARHEAP_READ_ONLY, 64u << 20);
  EXPECT(heap != NULL && farheap_heap_is_read_only(heap));
  size_t bytes = 0;
  node* const* list = farheap_heap_find(heap, "list", &bytes);
  EXPECT(list != NULL && bytes == sizeof *list);
  int total = 0;
  for (const node* one = *list; one != NULL; one = one->next) total += one->value;
  farheap_heap_close(heap);
  return total == expected;
}

int main(int count, char** words) {
  char past[1024], copy[1024];
  if (count != 2 || strlen(words[1]) > 1000) return 2;
  const char* uri = words[1];
  snprintf(past, sizeof past, "%s@monday", uri);
  make(uri);
  EXPECT(sum(uri, 999 * 500 - 999));
  EXPECT(sum(past, 999 * 500));
  snprintf(copy, sizeof copy, "%s.copy", uri);
  EXPECT(farheap_heap_copy(past, copy) == FARHEAP_DONE);
  EXPECT(farheap_heap_copy(past, copy) == FARHEAP_CONFLICT);
  EXPECT(sum(copy, 999 * 500));
  EXPECT(farheap_heap_remove(copy) == FARHEAP_DONE);
  EXPECT(farheap_heap_check(uri) == FARHEAP_DONE);
  EXPECT(farheap_heap_roll_back(uri) == FARHEAP_DONE);
  EXPECT(sum(uri, 999 * 500));
  farheap_heap* heap = farheap_heap_open(uri, FARHEAP_OPEN, 0);
  EXPECT(heap != NULL && farheap_heap_find(heap, "more", NULL) == NULL);
  EXPECT(farheap_last_error_code() == FARHEAP_NOT_FOUND);
  EXPECT(farheap_heap_remove_snapshot(heap, "monday") == FARHEAP_DONE);
  EXPECT(farheap_heap_destroy(heap, "list") == FARHEAP_DONE);
  EXPECT(farheap_heap_compact(heap) == FARHEAP_DONE);
  EXPECT(farheap_heap_remove(uri) == FARHEAP_CONFLICT);
  farheap_heap_close(heap);
  EXPECT(farheap_heap_remove(uri) == FARHEAP_DONE);
  puts("ok");
  return 0;
}
