// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks of a store in etcd: a key for each, whose modification revision is the block's version. Runs are ranges of
// keys; a transaction has as many of them as etcd takes, and several are in flight.
//
// Thread-safety: any thread.
#pragma once

#include <farheap/store.hpp>
#include <span>

#include "engines/etcd/counter.hpp"
#include "engines/etcd/space.hpp"
#include "engines/space/server_store.hpp"

namespace farheap::engines::etcd {

class Blocks final : public ServerBlocks {
 public:
  explicit Blocks(Space& space) : space_(space), block_bytes_(space.block_bytes()) {}

  Limits limits() const override;
  Capabilities more_capabilities() const override { return static_cast<Capabilities>(Capability::kSurvivesFailover); }
  grpc::Status get(std::span<Get> batch) override;
  grpc::Status put(std::span<Put> batch) override;
  grpc::Status erase(std::uint64_t first, std::uint64_t last) override;
  Answer<std::int64_t> add(std::string_view counter, std::int64_t delta) override {
    return counters_.add(counter, delta);
  }
  Answer<std::uint64_t> count() override;
  Answer<std::vector<BlockRun>> runs_from(std::uint64_t first) override;
  Answer<std::vector<NamedCounter>> counters() override { return counters_.all(); }
  std::size_t overhead_bytes() const override { return space_.keys().block(0).size(); }

 private:
  Space& space_;
  std::size_t block_bytes_;
  Counters counters_{space_};
};

}  // namespace farheap::engines::etcd
