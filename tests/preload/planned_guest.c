/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program to be planned: planned_guest MIB ROUNDS MODE. It sweeps over an object of MIB, and prints what it has
 * computed.
 *
 *   allocated  the object is of malloc()
 *   mapped     ... of mmap()
 *   replaced   the same, but the first one that is mapped gets a page of plain memory moved over it, and the sweeps are
 *              over a second one from the same line
 *
 * It computes a while on each page, as programs do that are worth a plan.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { kWords = 512, kTimes = 24, kPage = 4096 };

typedef uint64_t Page[kWords];

static uint64_t mixed(uint64_t value, uint64_t word) {
  value = (value ^ word) * 0xd6e8feb86659fd93u;
  return value ^ value >> 32;
}

__attribute__((noinline)) static void* obtain(size_t bytes, int is_mapped) {
  if (!is_mapped) return malloc(bytes);
  void* const at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? NULL : at;
}

/* So small a mapping is the kernel's. */
static int replace(void* object, size_t bytes) {
  void* const plain = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return plain != MAP_FAILED && mremap(plain, kPage, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, object) == object;
}

static uint64_t use(Page* page, uint64_t sum) {
  for (int k = 0; k < kTimes; ++k) {
    for (int i = 0; i < kWords; ++i) sum = mixed(sum, (*page)[i]);
  }
  (*page)[sum % kWords] += sum;
  return sum;
}

int main(int count, char** arguments) {
  if (count < 4) return 2;
  const size_t pages = (size_t)atol(arguments[1]) * 256, bytes = pages * sizeof(Page);
  const int rounds = atoi(arguments[2]);
  const int is_mapped = strcmp(arguments[3], "allocated") != 0;
  const int objects = strcmp(arguments[3], "replaced") == 0 ? 2 : 1;
  Page* object = NULL;
  for (int i = 0; i < objects; ++i) {
    object = obtain(bytes, is_mapped);
    if (object == NULL) return 3;
    if (i + 1 < objects && !replace(object, bytes)) return 4;
  }
  for (size_t i = 0; i < pages; ++i) {
    for (int k = 0; k < kWords; ++k) object[i][k] = mixed(i, (uint64_t)k);
  }
  uint64_t sum = 1;
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < pages; ++i) sum = use(&object[i], sum);
  }
  printf("%016lx\n", (unsigned long)sum);
  return 0;
}
