// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

// Where the ranks' datastores lie.
namespace metall::utility::mpi_datastore {

inline std::string make_root_dir_path(const std::string& root_dir_prefix) { return root_dir_prefix + "/"; }
inline std::string make_local_dir_path(const std::string& root_dir_prefix, int rank) {
  return make_root_dir_path(root_dir_prefix) + "/subdir-" + std::to_string(rank);
}

}  // namespace metall::utility::mpi_datastore
