// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// bigtable: one row for each block, so that runs may overlap as they like; a run is a range of rows. The layout is
// specified in docs/formats.md.
//
// What is guaranteed of puts to one block, without `expected`: those of one handle take effect in its order, and so do
// those of handles that have seen each other's versions. Puts of handles that have not are ordered by their clocks,
// which are put right by the server's where they are off by more than 50 ms. Compare-and-swap needs no clock.
// An erasure holds against puts of the same handle that are still under way somewhere.
//
// A failed add() is never tried again unless it cannot have been carried out: Bigtable has no place for a stamp beside
// a counter that it adds to.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "engines/bigtable/get.hpp"
#include "engines/bigtable/put.hpp"
#include "engines/engine_table.hpp"
#include "store/batch.hpp"

namespace farheap::engines {
namespace bigtable {
namespace {

class BigtableStore final : public Store {
 public:
  BigtableStore(std::unique_ptr<Space> space, std::size_t block_bytes)
      : space_(std::move(space)), writer_(*space_, block_bytes) {
    limits_.block_bytes = block_bytes;
    limits_.largest_value_bytes = std::size_t{4} << 20;
    limits_.largest_batch_bytes = std::size_t{32} << 20;
    limits_.largest_batch_operations = 8192;
    limits_.best_run_bytes = std::size_t{512} << 10;
  }

  std::string describe() const override { return space_->client().place().describe(); }
  Limits limits() const override { return limits_; }
  Capabilities capabilities() const override {
    auto all = static_cast<Capabilities>(Capability::kVersions) | static_cast<Capabilities>(Capability::kCounters) |
               static_cast<Capabilities>(Capability::kLinearisable) | static_cast<Capabilities>(Capability::kSparse);
    if (space_->is_kept()) {
      all |=
          static_cast<Capabilities>(Capability::kManyProcesses) | static_cast<Capabilities>(Capability::kManyMachines);
      if (!space_->client().is_emulator()) all |= static_cast<Capabilities>(Capability::kDurable);
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
    const auto status = writer_.put(batch);
    return settle(batch, status, "cannot write blocks");
  }

  Status erase(std::uint64_t first, std::uint64_t count) override {
    if (count == 0) return still_there({}, "");
    if (auto ok = space_->still_there(); !ok) return ok;
    const std::uint64_t last = count - 1 > ~std::uint64_t{0} - first ? ~std::uint64_t{0} : first + count - 1;
    return still_there(writer_.erase(first, last), "cannot erase blocks");
  }

  Result<std::int64_t> add(std::string_view counter, std::int64_t delta) override {
    // A connection that rested may be a dead one, which would leave it open whether this was done: a read finds out.
    if (rested()) space_->client().watch().doubt();
    if (auto ok = space_->still_there(); !ok) return fail(std::move(ok.error()));
    const auto key = space_->keys().counter(counter);
    Answer<std::int64_t> value = 0;
    if (delta != 0) {
      value = space_->client().add(key, kCount, delta);
    } else if (const auto rows = space_->client().read(row_of(key)); !rows) {
      value = tl::unexpected(rows.error());
    } else if (!rows->empty()) {
      value = static_cast<std::int64_t>(number_in(rows->front().cells.front().value));
    }
    const auto status = value ? grpc::Status() : value.error();
    const auto ok = still_there(status, "cannot count");
    if (!ok && delta != 0 && reply_of(status) == Reply::kUnclear && ok.error().code != ErrorCode::kCorrupt) {
      return fail(ErrorCode::kUnknown, "cannot count", describe(), "no answer came: it may or may not have happened",
                  "read it back to know");
    }
    if (!ok) return fail(ok.error());
    return *value;
  }

  // Bigtable acknowledges what is durable.
  Status sync() override { return still_there({}, ""); }

  Result<StoreUsage> usage() override {
    StoreUsage usage;
    auto request = rows_with(space_->keys().blocks());
    // Longer than a version: erased blocks may have left a cell.
    auto& filters = *request.mutable_filter()->mutable_chain();
    filters.add_filters()->set_cells_per_column_limit_filter(1);
    filters.add_filters()->set_value_regex_filter("\\C{9}\\C*");
    const auto status = space_->client().each_key(std::move(request), [&](std::span<const std::string> keys) {
      usage.blocks += keys.size();
      return true;
    });
    if (auto ok = still_there(status, "cannot look at the store"); !ok) return fail(ok.error());
    const std::size_t row_bytes = space_->keys().block(0).size() + kVersionBytes + limits_.block_bytes;
    usage.space_bytes = usage.blocks * row_bytes;
    return usage;
  }

 private:
  bool rested() {
    constexpr std::uint64_t kSecond = 1000 * 1000;
    const auto now = space_->clock().now();
    return last_add_.exchange(now) + kSecond < now;
  }

  // The status of a call, once it is sure that the store behind it is still the same.
  Status still_there(const grpc::Status& status, const char* what) {
    if (status.error_code() == grpc::StatusCode::NOT_FOUND) {
      return space_->lost("the server lost the table, and all that was in it");
    }
    if (!status.ok()) {
      if (auto ok = space_->still_there(); !ok && ok.error().code == ErrorCode::kCorrupt) return ok;
      return fail(space_->client().error(status, what));
    }
    return space_->still_there();
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
  Writer writer_;
  std::atomic<std::uint64_t> last_add_{0};
};

}  // namespace
}  // namespace bigtable

store::StoreResult open_bigtable(const std::string& place, const store::Parameters& parameters,
                                 const StoreOptions& options) {
  auto client = bigtable::Client::open(place, parameters);
  if (!client) return fail(std::move(client.error()));
  if (auto ok = store::check_block_bytes(options.block_bytes, (*client)->place().describe()); !ok) {
    return fail(std::move(ok.error()));
  }
  auto space = bigtable::Space::open(std::move(*client), options);
  if (!space) return fail(std::move(space.error()));
  return std::make_unique<bigtable::BigtableStore>(std::move(*space), options.block_bytes);
}

}  // namespace farheap::engines
