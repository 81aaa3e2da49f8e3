// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks of a store in Spanner: a batch of gets as reads of keys and ranges, several in flight; a batch of puts as one
// transaction; counters.
//
// Thread-safety: any thread.
#pragma once

#include <farheap/store.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "engines/spanner/space.hpp"

namespace farheap::engines::spanner {

// Each sets the outcome of every entry, and the version of single blocks; the status says why one is kFailed or
// kUnknown. Requires: the batch has passed store::check().
[[nodiscard]] grpc::Status get_blocks(Space& space, std::span<Get> batch);
[[nodiscard]] grpc::Status put_blocks(Space& space, std::span<Put> batch);
[[nodiscard]] grpc::Status erase_blocks(Space& space, std::uint64_t first, std::uint64_t last);
[[nodiscard]] Answer<std::int64_t> add_to(Space& space, std::string_view counter, std::int64_t delta);
[[nodiscard]] Answer<std::uint64_t> count_blocks(Space& space);
[[nodiscard]] Answer<std::vector<BlockRun>> runs_from(Space& space, std::uint64_t first);
[[nodiscard]] Answer<std::vector<NamedCounter>> all_counters(Space& space);

}  // namespace farheap::engines::spanner
