// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// datastore: Google's Datastore (Firestore in the mode of Datastore), or its emulator. The entities are specified in
// docs/formats.md.
//
// Whatever got no answer is found out by reading back: add() and compare-and-swap are done once and only once.
#include <fmt/format.h>

#include "engines/datastore/blocks.hpp"
#include "engines/engine_table.hpp"
#include "store/batch.hpp"

namespace farheap::engines {
namespace datastore {
namespace {

constexpr char kCount[] = "n";

class DatastoreStore final : public Store {
 public:
  DatastoreStore(std::unique_ptr<Space> space, std::size_t block_bytes)
      : space_(std::move(space)), blocks_(*space_, block_bytes) {
    limits_.block_bytes = block_bytes;
    limits_.largest_value_bytes = std::size_t{4} << 20;
    limits_.largest_batch_bytes = std::size_t{16} << 20;
    limits_.largest_batch_operations = 4096;
    limits_.best_run_bytes = std::size_t{1} << 20;
  }

  std::string describe() const override { return space_->client().place().describe(); }
  Limits limits() const override { return limits_; }
  Capabilities capabilities() const override {
    auto all = static_cast<Capabilities>(Capability::kVersions) | static_cast<Capabilities>(Capability::kCounters) |
               static_cast<Capabilities>(Capability::kLinearisable) | static_cast<Capabilities>(Capability::kSparse);
    if (!space_->client().is_emulator()) all |= static_cast<Capabilities>(Capability::kSurvivesFailover);
    if (space_->is_kept()) {
      all |=
          static_cast<Capabilities>(Capability::kManyProcesses) | static_cast<Capabilities>(Capability::kManyMachines);
      if (!space_->client().is_emulator()) all |= static_cast<Capabilities>(Capability::kDurable);
    }
    return all;
  }

  Status get(std::span<Get> batch) override {
    if (auto ok = store::check(batch, limits_, capabilities(), *this); !ok) return ok;
    return settle(batch, blocks_.get(batch), "cannot read blocks");
  }

  Status put(std::span<Put> batch) override {
    if (auto ok = store::check(batch, limits_, capabilities(), *this); !ok) return ok;
    return settle(batch, blocks_.put(batch), "cannot write blocks");
  }

  Status erase(std::uint64_t first, std::uint64_t count) override {
    if (count == 0) return done({}, "");
    const std::uint64_t last = count - 1 > ~std::uint64_t{0} - first ? ~std::uint64_t{0} : first + count - 1;
    return done(blocks_.erase(first, last), "cannot erase blocks");
  }

  Result<std::int64_t> add(std::string_view counter, std::int64_t delta) override {
    std::vector<api::Key> keys(1);
    space_->client().set_key(keys[0], kCounterKind, space_->prefix() + escaped(counter));
    std::uint64_t sum = 0;
    const auto added = space_->once(keys, [&](const api::LookupResponse& found) {
      const api::EntityResult* counter_found = nullptr;
      for (const auto& result : found.found()) {
        if (result.entity().key().path(0).kind() == kCounterKind) counter_found = &result;
      }
      sum = static_cast<std::uint64_t>(delta);
      if (counter_found != nullptr) sum += number_in(counter_found->entity(), kCount);
      std::vector<api::Mutation> mutations;
      if (delta == 0) return mutations;
      auto& entity = over(counter_found, mutations.emplace_back());
      *entity.mutable_key() = keys[0];
      set_number(entity, kCount, sum);
      return mutations;
    });
    if (const auto ok = done(added ? grpc::Status() : added.error(), "cannot count"); !ok) return fail(ok.error());
    return static_cast<std::int64_t>(sum);
  }

  // Datastore acknowledges what is durable.
  Status sync() override { return done({}, ""); }

  Result<StoreUsage> usage() override {
    const auto count = blocks_.count();
    if (auto ok = done(count ? grpc::Status() : count.error(), "cannot look at the store"); !ok) {
      return fail(ok.error());
    }
    return StoreUsage{.blocks = *count, .space_bytes = *count * limits_.block_bytes};
  }

 private:
  Status done(const grpc::Status& status, const char* what) {
    if (space_->is_lost()) return fail(space_->lost_error());
    if (status.ok()) return {};
    if (status.error_code() == grpc::StatusCode::UNKNOWN) {
      return fail(ErrorCode::kUnknown, what, describe(), "no answer came: it may or may not have happened",
                  "read it back to know");
    }
    return fail(space_->client().error(status, what));
  }

  template <class Entry>
  Status settle(std::span<Entry> batch, const grpc::Status& status, const char* what) {
    if (space_->is_lost()) {
      for (auto& entry : batch) entry.outcome = Outcome::kCorrupt;
    }
    if (auto ok = done(status, what); !ok) return ok;
    return store::summary(std::span<const Entry>(batch), *this);
  }

  std::unique_ptr<Space> space_;
  Limits limits_;
  Blocks blocks_;
};

}  // namespace
}  // namespace datastore

store::StoreResult open_datastore(const std::string& place, const store::Parameters& parameters,
                                  const StoreOptions& options) {
  auto client = datastore::Client::open(place, parameters);
  if (!client) return fail(std::move(client.error()));
  if (auto ok = store::check_block_bytes(options.block_bytes, (*client)->place().describe()); !ok) {
    return fail(std::move(ok.error()));
  }
  auto space = datastore::Space::open(std::move(*client), options);
  if (!space) return fail(std::move(space.error()));
  return std::make_unique<datastore::DatastoreStore>(std::move(*space), options.block_bytes);
}

}  // namespace farheap::engines
