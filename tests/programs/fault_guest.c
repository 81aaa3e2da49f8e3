/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The guest of the fault tests: memory whose every word follows from its place and from when it was last written.
 *
 *   fault_guest MEBIBYTES PASSES [SIGN]
 *
 * Fills it, makes the file SIGN, then passes over it, in order and scattered by turns; a pass checks every page and
 * writes two of three anew, so that some leave memory unchanged. Prints one line and ends with 0; wrong data is said
 * loudly and ends with 99, a status that nothing else here uses. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { kWords = 512, kPagesOfBlock = 16, kPagesOfMebibyte = 256, kWrongData = 99 };
static const size_t kStride = 7919; /* a prime, so that scattered passes meet every page */

static uint64_t word(size_t page, long pass, size_t index) {
  uint64_t value = ((uint64_t)page << 32) + ((uint64_t)pass << 12) + index + 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

/* Pass 0 is the filling. */
static int writes(size_t page, long pass) { return pass == 0 || (page + (size_t)pass) % 3 != 0; }

static void write_page(uint64_t* at, size_t page, long pass) {
  for (size_t i = 0; i < kWords; ++i) at[i] = word(page, pass, i);
}

static int is_right(const uint64_t* at, size_t page, long pass) {
  for (size_t i = 0; i < kWords; ++i) {
    if (at[i] != word(page, pass, i)) return 0;
  }
  return 1;
}

int main(int count, char** arguments) {
  if (count < 3) return 1;
  const size_t pages = strtoul(arguments[1], NULL, 10) * kPagesOfMebibyte;
  const long passes = strtol(arguments[2], NULL, 10);
  const size_t blocks = pages / kPagesOfBlock;
  if (pages == 0 || pages % kStride == 0) return 1;
  uint64_t** block = (uint64_t**)malloc(blocks * sizeof *block);
  if (block == NULL) return 1;
  for (size_t i = 0; i < blocks; ++i) {
    block[i] = malloc((size_t)kPagesOfBlock * kWords * sizeof **block);
    if (block[i] == NULL) return 1;
    for (size_t k = 0; k < kPagesOfBlock; ++k) write_page(block[i] + k * kWords, i * kPagesOfBlock + k, 0);
  }
  if (count > 3) {
    FILE* sign = fopen(arguments[3], "w");
    if (sign == NULL) return 1;
    fclose(sign);
  }
  for (long pass = 1; pass <= passes; ++pass) {
    for (size_t i = 0; i < pages; ++i) {
      const size_t page = pass % 2 != 0 ? i : i * kStride % pages;
      uint64_t* at = block[page / kPagesOfBlock] + page % kPagesOfBlock * kWords;
      if (!is_right(at, page, writes(page, pass - 1) ? pass - 1 : pass - 2)) {
        printf("WRONG DATA in page %zu, pass %ld\n", page, pass);
        return kWrongData;
      }
      if (writes(page, pass)) write_page(at, page, pass);
    }
  }
  printf("%zu pages right in %ld passes\n", pages, passes);
  return 0;
}
