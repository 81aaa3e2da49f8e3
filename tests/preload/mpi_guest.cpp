// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A ring of processes: each sends an array that does not fit into its budget to the next, a piece at a time.
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

constexpr std::size_t kWords = std::size_t{24} << 20;
constexpr std::size_t kPiece = std::size_t{1} << 20;

std::uint32_t word(std::size_t index, int rank) {
  return static_cast<std::uint32_t>(index * 2654435761 + static_cast<std::size_t>(rank));
}

}  // namespace

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<std::uint32_t> mine(kWords), theirs(kPiece);
  for (std::size_t i = 0; i < kWords; ++i) mine[i] = word(i, rank);
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  long wrong = 0, all_wrong = 0;
  for (std::size_t at = 0; at < kWords; at += kPiece) {
    MPI_Sendrecv(mine.data() + at, kPiece, MPI_UINT32_T, next, 0, theirs.data(), kPiece, MPI_UINT32_T, before, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (std::size_t i = 0; i < kPiece; ++i) wrong += theirs[i] != word(at + i, before) ? 1 : 0;
  }
  MPI_Reduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%ld words of %d processes are wrong\n", all_wrong, size);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
