// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// far_matrix STORE: what a translated program does with a matrix of 10 x 10 characters on its heap (seed 000, chapter
// 6): the matrix is in the store, and here is what says that its addresses are taken.
#include <cstdio>
#include <farheap/far_heap.hpp>

namespace {

constexpr std::size_t kSide = 10;

int tell(const farheap::Error& error) {
  std::fprintf(stderr, "far_matrix: %s\n", error.message().c_str());
  return 1;
}

}  // namespace

int main(int count, char** values) {
  if (count != 2) {
    std::fprintf(stderr, "usage: far_matrix STORE, for example far_matrix mem:\n");
    return 2;
  }
  auto heap = farheap::FarHeap::open(values[1]);
  if (!heap) return tell(heap.error());
  auto matrix = heap->allocate(kSide * kSide);
  if (!matrix) return tell(matrix.error());
  auto* const cells = static_cast<char*>(*matrix);  // an address to count with, not one to touch
  for (std::size_t i = 0; i < kSide * kSide; ++i) {
    if (auto put = heap->put(cells + i, static_cast<char>('a' + i % 26)); !put) return tell(put.error());
  }
  for (std::size_t row = 0; row < kSide; ++row) {
    for (std::size_t column = 0; column < kSide; ++column) {
      const auto cell = heap->get<char>(cells + row * kSide + column);
      if (!cell) return tell(cell.error());
      std::putchar(*cell);
    }
    std::putchar('\n');
  }
  (void)heap->free(cells);
  return 0;
}
