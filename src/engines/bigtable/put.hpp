// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Puts and erasures as MutateRows requests of many rows, and compare-and-swap as CheckAndMutateRow.
//
// Every attempt of a put writes the same cell, with the same time, so doing it twice changes nothing, and one that was
// delayed in the network cannot hide what was put later, because the newest cell counts.
//
// Thread-safety: Writer: any thread.
#pragma once

#include <atomic>
#include <farheap/store.hpp>
#include <span>

#include "engines/bigtable/space.hpp"

namespace farheap::engines::bigtable {

class Writer {
 public:
  explicit Writer(Space& space) : space_(space), block_bytes_(space.block_bytes()) {}

  // Sets the outcome of every entry, and the version of single blocks. Requires: the batch has passed store::check().
  [[nodiscard]] grpc::Status put(std::span<Put> batch);
  // [first, last]
  [[nodiscard]] grpc::Status erase(std::uint64_t first, std::uint64_t last);

 private:
  struct Row;
  [[nodiscard]] grpc::Status write(std::span<Row> rows);
  [[nodiscard]] grpc::Status write_round(std::span<Row*> pending, Attempts& attempts);
  [[nodiscard]] grpc::Status swap(std::span<Put*> entries);
  [[nodiscard]] grpc::Status swap_one(Put& entry, bool matched, bool was_unclear);
  void fill(api::MutateRowsRequest::Entry& entry, const Row& row) const;
  void fill(api::CheckAndMutateRowRequest& request, const Put& entry, Version expected) const;
  [[nodiscard]] grpc::Status erase_keys(std::span<const std::string> keys);

  Space& space_;
  std::size_t block_bytes_;
  // An attempt of a put got no answer: it may be carried out late, when the block is erased. From then on an erased
  // block keeps a cell that says so, and is newer.
  std::atomic<bool> was_unclear_{false};
};

}  // namespace farheap::engines::bigtable
