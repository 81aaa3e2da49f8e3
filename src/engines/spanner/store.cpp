// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// spanner: one row for each block, in a table that all stores of the database share. The layout is specified in
// docs/formats.md.
//
// A batch of puts is one transaction, so it happens as a whole or not at all, and after all that was acknowledged
// before. A transaction whose answer was lost is asked for again in the same words, which Spanner carries out once.
#include <fmt/format.h>

#include <algorithm>

#include "engines/engine_table.hpp"
#include "engines/spanner/blocks.hpp"
#include "store/batch.hpp"

namespace farheap::engines {
namespace spanner {
namespace {

// A commit takes 80,000 cells, of which a block has four, and 100 MiB, of which base64 takes a quarter.
constexpr std::size_t kMostBlocks = 16384;

class SpannerStore final : public Store {
 public:
  SpannerStore(std::unique_ptr<Space> space, std::size_t block_bytes) : space_(std::move(space)) {
    limits_.block_bytes = block_bytes;
    limits_.largest_value_bytes = std::size_t{4} << 20;
    limits_.largest_batch_bytes = std::min(std::size_t{16} << 20, kMostBlocks * block_bytes);
    limits_.largest_batch_operations = 4096;
    limits_.best_run_bytes = std::size_t{256} << 10;
  }

  std::string describe() const override { return space_->client().place().describe(); }
  Limits limits() const override { return limits_; }
  Capabilities capabilities() const override {
    auto all = static_cast<Capabilities>(Capability::kVersions) | static_cast<Capabilities>(Capability::kCounters) |
               static_cast<Capabilities>(Capability::kLinearisable) |
               static_cast<Capabilities>(Capability::kAtomicBatch) | static_cast<Capabilities>(Capability::kSparse);
    if (space_->is_kept()) {
      all |=
          static_cast<Capabilities>(Capability::kManyProcesses) | static_cast<Capabilities>(Capability::kManyMachines);
      if (!space_->client().is_emulator()) {
        all |=
            static_cast<Capabilities>(Capability::kDurable) | static_cast<Capabilities>(Capability::kSurvivesFailover);
      }
    }
    return all;
  }

  Status get(std::span<Get> batch) override {
    if (auto ok = store::check(batch, limits_, capabilities(), *this); !ok) return ok;
    if (batch.empty()) return {};
    space_->client().watch().look();
    const auto status = get_blocks(*space_, limits_.block_bytes, batch);
    // Seldom asked for, and the first that a server would say that lost everything.
    const bool any_absent = std::ranges::any_of(batch, [](auto& entry) { return entry.outcome == Outcome::kAbsent; });
    if (any_absent) space_->client().watch().doubt();
    return settle(batch, status, "cannot read blocks");
  }

  Status put(std::span<Put> batch) override {
    if (auto ok = store::check(batch, limits_, capabilities(), *this); !ok) return ok;
    if (batch.empty()) return {};
    if (auto ok = space_->still_there(); !ok) return none_done(batch, std::move(ok));
    const auto status = put_blocks(*space_, limits_.block_bytes, batch);
    return settle(batch, status, "cannot write blocks");
  }

  Status erase(std::uint64_t first, std::uint64_t count) override {
    if (count == 0) return space_->still_there();
    if (auto ok = space_->still_there(); !ok) return ok;
    const std::uint64_t last = count - 1 > ~std::uint64_t{0} - first ? ~std::uint64_t{0} : first + count - 1;
    return still_there(erase_blocks(*space_, first, last), "cannot erase blocks");
  }

  Result<std::int64_t> add(std::string_view counter, std::int64_t delta) override {
    if (auto ok = space_->still_there(); !ok) return fail(std::move(ok.error()));
    const auto value = add_to(*space_, counter, delta);
    const auto status = value ? grpc::Status() : value.error();
    auto ok = still_there(status, "cannot count");
    if (ok) return *value;
    if (reply_of(status) == Reply::kUnclear && delta != 0 && ok.error().code != ErrorCode::kCorrupt) {
      ok.error().code = ErrorCode::kUnknown;
    }
    return fail(std::move(ok.error()));
  }

  // Spanner acknowledges what is durable.
  Status sync() override { return space_->still_there(); }

  Result<StoreUsage> usage() override {
    const auto count = count_blocks(*space_);
    if (auto ok = still_there(count ? grpc::Status() : count.error(), "cannot look at the store"); !ok) {
      return fail(std::move(ok.error()));
    }
    const std::size_t row_bytes = space_->name().size() + 2 * sizeof(std::uint64_t) + limits_.block_bytes;
    return StoreUsage{.blocks = *count, .space_bytes = *count * row_bytes};
  }

 private:
  // The status of a call, once it is sure that the store behind it is still the same.
  Status still_there(const grpc::Status& status, const char* what) {
    if (status.error_code() == grpc::StatusCode::NOT_FOUND) {
      return space_->lost("the server lost the database, and all that was in it");
    }
    if (status.ok()) return space_->still_there();
    return fail(space_->client().error(status, what));
  }

  static Status none_done(std::span<Put> batch, Status why) {
    for (auto& entry : batch) entry.outcome = Outcome::kFailed;
    return why;
  }

  template <class Entry>
  Status settle(std::span<Entry> batch, const grpc::Status& status, const char* what) {
    auto ok = still_there(status, what);
    if (!ok && ok.error().code == ErrorCode::kCorrupt) {
      for (auto& entry : batch) entry.outcome = Outcome::kCorrupt;
    } else if (!ok && status.ok()) {  // done, but nobody knows where
      for (auto& entry : batch) entry.outcome = Outcome::kUnknown;
    }
    if (!ok) return ok;
    return store::summary(std::span<const Entry>(batch), *this);
  }

  std::unique_ptr<Space> space_;
  Limits limits_;
};

}  // namespace
}  // namespace spanner

store::StoreResult open_spanner(const std::string& place, const store::Parameters& parameters,
                                const StoreOptions& options) {
  auto client = spanner::Client::open(place, parameters);
  if (!client) return fail(std::move(client.error()));
  if (auto ok = store::check_block_bytes(options.block_bytes, (*client)->place().describe()); !ok) {
    return fail(std::move(ok.error()));
  }
  auto space = spanner::Space::open(std::move(*client), options);
  if (!space) return fail(std::move(space.error()));
  return std::make_unique<spanner::SpannerStore>(std::move(*space), options.block_bytes);
}

}  // namespace farheap::engines
