// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A store on a server, whatever the engine: no answer is believed before it is sure that what gave it is still what was
// opened, and each end of a call has its words. The engine does the rest, with blocks (ServerBlocks) in a space.
//
// Thread-safety: any thread.
#pragma once

#include <farheap/store.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engines/space/space.hpp"
#include "store/batch.hpp"
#include "store/kinds.hpp"

namespace farheap::engines {

// What an engine does with blocks and counters. Batches have passed store::check(); each entry gets its outcome and, if
// it is a single block, its version. A status says why an entry is kFailed or kUnknown; it is OK if the store is lost.
class ServerBlocks {
 public:
  virtual ~ServerBlocks() = default;
  [[nodiscard]] virtual Limits limits() const = 0;
  // Besides those that all have.
  [[nodiscard]] virtual Capabilities more_capabilities() const { return 0; }
  [[nodiscard]] virtual grpc::Status get(std::span<Get> batch) = 0;
  [[nodiscard]] virtual grpc::Status put(std::span<Put> batch) = 0;
  [[nodiscard]] virtual grpc::Status erase(std::uint64_t first, std::uint64_t last) = 0;
  // UNKNOWN: it may have happened.
  [[nodiscard]] virtual Answer<std::int64_t> add(std::string_view counter, std::int64_t delta) = 0;
  [[nodiscard]] virtual Answer<std::uint64_t> count() = 0;
  // As Store::runs_from() and Store::counters().
  [[nodiscard]] virtual Answer<std::vector<BlockRun>> runs_from(std::uint64_t first) = 0;
  [[nodiscard]] virtual Answer<std::vector<NamedCounter>> counters() = 0;
  // What a block takes beside its bytes.
  [[nodiscard]] virtual std::size_t overhead_bytes() const = 0;
};

class ServerStore final : public Store {
 public:
  // `blocks` are in `space`.
  ServerStore(std::unique_ptr<ServerSpace> space, std::unique_ptr<ServerBlocks> blocks);

  std::string describe() const override { return space_->server().shown(); }
  Limits limits() const override { return limits_; }
  Capabilities capabilities() const override { return capabilities_; }
  Status get(std::span<Get> batch) override;
  Status put(std::span<Put> batch) override;
  Status erase(std::uint64_t first, std::uint64_t count) override;
  Result<std::int64_t> add(std::string_view counter, std::int64_t delta) override;
  // Servers acknowledge what is durable.
  Status sync() override { return space_->still_there(); }
  Result<StoreUsage> usage() override;
  Result<std::vector<BlockRun>> runs_from(std::uint64_t first) override;
  Result<std::vector<NamedCounter>> counters() override;

 private:
  // What becomes of a call that ended like this.
  enum class Changes { kNothing, kSomething };
  [[nodiscard]] Status done(const grpc::Status& status, const char* what, Changes changes = Changes::kNothing);
  template <class T>
  [[nodiscard]] Result<T> looked(Answer<T> answer);
  template <class Entry>
  [[nodiscard]] Status settle(std::span<Entry> batch, const grpc::Status& status, Status ok);

  std::unique_ptr<ServerSpace> space_;
  std::unique_ptr<ServerBlocks> blocks_;
  Limits limits_;
  Capabilities capabilities_;
};

// Opens that of an engine.
template <class Client, class Space, class Blocks>
[[nodiscard]] store::StoreResult open_server_store(const std::string& place, const store::Parameters& parameters,
                                                   const StoreOptions& options) {
  auto client = Client::open(place, parameters, options);
  if (!client) return fail(std::move(client.error()));
  if (auto ok = store::check_block_bytes(options.block_bytes, (*client)->shown()); !ok) {
    return fail(std::move(ok.error()));
  }
  auto space = Space::open(std::move(*client), options);
  if (!space) return fail(std::move(space.error()));
  auto blocks = std::make_unique<Blocks>(**space);
  return std::make_unique<ServerStore>(std::move(*space), std::move(blocks));
}

}  // namespace farheap::engines
