// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The few calls of MPI that the adaptor needs. Errors are said in the log.
#pragma once

#include <mpi.h>

#include <metall/logger.hpp>
#include <utility>

namespace metall::utility::mpi {

// -1 on error.
inline int comm_rank(const MPI_Comm& comm) {
  int rank = -1;
  if (::MPI_Comm_rank(comm, &rank) == MPI_SUCCESS) return rank;
  logger::out(logger::level::error, __FILE__, __LINE__, "MPI_Comm_rank failed");
  return -1;
}

// -1 on error.
inline int comm_size(const MPI_Comm& comm) {
  int size = -1;
  if (::MPI_Comm_size(comm, &size) == MPI_SUCCESS) return size;
  logger::out(logger::level::error, __FILE__, __LINE__, "MPI_Comm_size failed");
  return -1;
}

inline bool barrier(const MPI_Comm& comm) {
  if (::MPI_Barrier(comm) == MPI_SUCCESS) return true;
  logger::out(logger::level::error, __FILE__, __LINE__, "MPI_Barrier failed");
  return false;
}

// {whether it could be asked, the answer}
inline std::pair<bool, bool> global_logical(bool mine, MPI_Op how, const MPI_Comm& comm) {
  int all = 0;
  const int one = mine ? 1 : 0;
  const bool asked = ::MPI_Allreduce(&one, &all, 1, MPI_INT, how, comm) == MPI_SUCCESS;
  return {asked, all != 0};
}
inline std::pair<bool, bool> global_logical_and(bool mine, const MPI_Comm& comm) {
  return global_logical(mine, MPI_LAND, comm);
}
inline std::pair<bool, bool> global_logical_or(bool mine, const MPI_Comm& comm) {
  return global_logical(mine, MPI_LOR, comm);
}

// The lowest rank, in `comm`, of those on this machine. -1 on error.
inline int determine_local_root(const MPI_Comm& comm) {
  const int rank = comm_rank(comm);
  int lowest = -1;
  MPI_Comm machine;
  if (::MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &machine) != MPI_SUCCESS) return -1;
  if (::MPI_Allreduce(&rank, &lowest, 1, MPI_INT, MPI_MIN, machine) != MPI_SUCCESS) lowest = -1;
  ::MPI_Comm_free(&machine);
  return lowest;
}

}  // namespace metall::utility::mpi
