// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A batch of gets as ReadRows requests: runs as ranges, scattered blocks as a set of keys, several requests in flight.
//
// Thread-safety: one thread at a time, for one batch each.
#pragma once

#include <farheap/store.hpp>
#include <span>
#include <vector>

#include "engines/bigtable/space.hpp"

namespace farheap::engines::bigtable {

// Sets the outcome of every entry, and the version of single blocks. An entry that could not be read is kFailed, and
// the status says why. Requires: the batch has passed store::check().
[[nodiscard]] grpc::Status get_blocks(Space& space, std::span<Get> batch);

// The newest version of one block; 0: it is not there.
struct FoundVersion {
  Version version = 0;
  bool is_erased = false;  // the version is that of its erasing
};
[[nodiscard]] Answer<FoundVersion> find_version(Space& space, std::uint64_t block);

}  // namespace farheap::engines::bigtable
