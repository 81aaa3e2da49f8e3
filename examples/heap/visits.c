/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Counts how often it was run, in C.
 *
 *   visits HEAP
 */
#include <farheap/farheap.h>
#include <stdio.h>

int main(int count, char** words) {
  if (count != 2) {
    fprintf(stderr, "usage: visits HEAP, as in: visits file:/tmp/visits\n");
    return 2;
  }
  farheap_heap* heap = farheap_heap_open(words[1], FARHEAP_OPEN_OR_CREATE, 64 << 20);
  long* visits = heap == NULL ? NULL : farheap_heap_named(heap, "visits", sizeof *visits);
  if (visits == NULL) {
    fprintf(stderr, "%s\n", farheap_last_error());
    farheap_heap_close(heap);
    return 1;
  }
  printf("visit %ld\n", ++*visits);
  int failed = farheap_heap_commit(heap);
  if (failed) fprintf(stderr, "%s\n", farheap_last_error());
  farheap_heap_close(heap);
  return failed != 0;
}
