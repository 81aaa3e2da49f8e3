/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Notes that stay, in C: a list with plain pointers, and a snapshot to which it can go back.
 *
 *   notes HEAP [add TEXT | keep NAME | back]      then prints the notes, the newest first
 */
#include <farheap/farheap.h>
#include <stdio.h>
#include <string.h>

typedef struct note {
  const struct note* older;
  char text[];
} note;

static int failed(farheap_heap* heap) {
  fprintf(stderr, "%s\n", farheap_last_error());
  farheap_heap_close(heap);
  return 1;
}

static int add(farheap_heap* heap, const note** newest, const char* text) {
  note* one = farheap_heap_allocate(heap, sizeof *one + strlen(text) + 1, 0);
  if (one == NULL) return FARHEAP_NO_SPACE;
  one->older = *newest;
  strcpy(one->text, text);
  *newest = one;
  return farheap_heap_commit(heap);
}

int main(int count, char** words) {
  const char* verb = count > 2 ? words[2] : "";
  const char* word = count > 3 ? words[3] : "";
  if (count < 2 || count > 4) {
    fprintf(stderr, "usage: notes HEAP [add TEXT | keep NAME | back], as in: notes file:/tmp/notes add \"buy milk\"\n");
    return 2;
  }
  if (strcmp(verb, "back") == 0 && farheap_heap_roll_back(words[1]) != FARHEAP_DONE) return failed(NULL);
  farheap_heap* heap = farheap_heap_open(words[1], FARHEAP_OPEN_OR_CREATE, 64 << 20);
  const note** newest = heap == NULL ? NULL : (const note**)farheap_heap_named(heap, "newest", sizeof *newest);
  if (newest == NULL) return failed(heap);
  if (strcmp(verb, "add") == 0 && add(heap, newest, word) != FARHEAP_DONE) return failed(heap);
  if (strcmp(verb, "keep") == 0 && farheap_heap_snapshot(heap, word) != FARHEAP_DONE) return failed(heap);
  for (const note* one = *newest; one != NULL; one = one->older) printf("%s\n", one->text);
  farheap_heap_close(heap);
  return 0;
}
