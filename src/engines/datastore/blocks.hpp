// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks of a store in Datastore: an entity for each, or for each piece of one that is larger than an entity may be
// (1,048,572 bytes).
//
// Thread-safety: any thread.
#pragma once

#include <farheap/store.hpp>
#include <span>

#include "engines/datastore/space.hpp"
#include "engines/space/server_store.hpp"

namespace farheap::engines::datastore {

class Blocks final : public ServerBlocks {
 public:
  explicit Blocks(Space& space);

  Limits limits() const override;
  Capabilities more_capabilities() const override;
  grpc::Status get(std::span<Get> batch) override;
  grpc::Status put(std::span<Put> batch) override;
  grpc::Status erase(std::uint64_t first, std::uint64_t last) override;
  Answer<std::int64_t> add(std::string_view counter, std::int64_t delta) override;
  Answer<std::uint64_t> count() override;
  Answer<std::vector<BlockRun>> runs_from(std::uint64_t first) override;
  Answer<std::vector<NamedCounter>> counters() override;
  std::size_t overhead_bytes() const override { return 0; }

 private:
  struct Wanted;
  struct Request;
  [[nodiscard]] std::string name(std::uint64_t block, std::size_t piece) const;
  [[nodiscard]] grpc::Status get_round(std::vector<Wanted*> wanted, Attempts& attempts);
  void take(const api::Entity& entity, std::span<Wanted* const> wanted) const;
  void add_mutations(std::vector<api::Mutation>& mutations, std::uint64_t block, std::span<const std::byte> page,
                     Version version, std::optional<const api::EntityResult*> over_found = std::nullopt) const;
  [[nodiscard]] grpc::Status put_plainly(std::span<Put*> entries);
  [[nodiscard]] grpc::Status swap(Put& entry);
  [[nodiscard]] grpc::Status look();
  [[nodiscard]] std::uint64_t number_of(const api::Key& key) const;
  [[nodiscard]] grpc::Status erase_keys(std::vector<api::Key> keys);

  Space& space_;
  std::size_t block_bytes_;
  std::size_t pieces_;  // of a block
  std::size_t piece_bytes_;
  std::size_t blocks_a_request_;
};

}  // namespace farheap::engines::datastore
