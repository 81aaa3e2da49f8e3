/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Walks an array larger than its budget with a hint, then looks a few places up in it at random. "hinted" or "plain".
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "farheap/loop_hint.h"

enum { kPages = 24576, kPageWords = 512, kLookUps = 3000 };

int main(int count, char** arguments) {
  const int hinted = count > 1 && strcmp(arguments[1], "hinted") == 0;
  const size_t bytes = (size_t)kPages * kPageWords * sizeof(uint64_t);
  uint64_t* const words = malloc(bytes);
  if (words == NULL || (hinted && &__farheap_loop == NULL)) return 1;
  for (int turn = 0; turn < 2; ++turn) {
    if (hinted) __farheap_loop(words, bytes, 8, FARHEAP_LOOP_READS | FARHEAP_LOOP_WRITES);
    for (size_t i = 0; i < bytes / 8; ++i) words[i] = i * 31 + (uint64_t)turn;
  }
  uint64_t sum = 0;
  uint64_t place = 1;
  for (int i = 0; i < kLookUps; ++i) {
    place = place * 6364136223846793005U + 1442695040888963407U;
    sum = sum * 31 + words[(place >> 33) % (bytes / 8)];
  }
  printf("%llu\n", (unsigned long long)sum);
  free(words);
  return 0;
}
