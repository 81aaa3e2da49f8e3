// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LMDB's environments. One must not be opened twice in a process: closing one of the two lets go of the locks of both.
// So all stores of a process over the same file share one.
//
// Thread-safety: any thread.
#pragma once

#include <lmdb.h>

#include <farheap/result.hpp>
#include <memory>
#include <string>

namespace farheap::store {

struct CloseEnvironment {
  void operator()(MDB_env* env) const;
};
using Environment = std::unique_ptr<MDB_env, CloseEnvironment>;

[[nodiscard]] Error lmdb_error(int error, std::string what, std::string subject);

// `flags` are those of mdb_env_open that are for durability. kConflict if this process has it open with others.
[[nodiscard]] Result<Environment> open_environment(const std::string& path, unsigned flags, const std::string& subject);

// Of one that was opened not to make every put durable. After one that failed all fail, for all who share it.
[[nodiscard]] Status sync_environment(const Environment& env, const std::string& subject);

// The file of a store that outlives its process: `place` itself, or the one in it that has the usual name.
[[nodiscard]] std::string kept_lmdb_file(const std::string& place);

}  // namespace farheap::store
