// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks of a store in etcd: a key for each, whose modification revision is the block's version. Runs are ranges of
// keys; a transaction has as many of them as etcd takes, and several are in flight.
//
// Thread-safety: any thread.
#pragma once

#include <farheap/store.hpp>
#include <span>

#include "engines/etcd/space.hpp"

namespace farheap::engines::etcd {

// Each sets the outcomes (and the versions of single blocks). The status is the reason for those that are errors; it is
// OK if the store is lost. Requires: the batch has passed store::check().
[[nodiscard]] grpc::Status get_blocks(Space& space, std::size_t block_bytes, std::span<Get> batch);
[[nodiscard]] grpc::Status put_blocks(Space& space, std::size_t block_bytes, std::span<Put> batch);
// [first, last]
[[nodiscard]] grpc::Status erase_blocks(Space& space, std::uint64_t first, std::uint64_t last);
[[nodiscard]] Answer<std::uint64_t> count_blocks(Space& space);

}  // namespace farheap::engines::etcd
