// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// spanner: one row for each block, in a table that all stores of the database share. The layout is specified in
// docs/formats.md.
//
// A batch of puts is one transaction, so it happens as a whole or not at all, and after all that was acknowledged
// before. A transaction whose answer was lost is asked for again in the same words, which Spanner carries out once.
#include <algorithm>

#include "engines/engine_table.hpp"
#include "engines/space/keeper.hpp"
#include "engines/space/server_store.hpp"
#include "engines/spanner/blocks.hpp"

namespace farheap::engines {
namespace spanner {
namespace {

// A commit takes 80,000 cells, of which a block has four, and 100 MiB, of which base64 takes a quarter.
constexpr std::size_t kMostBlocks = 16384;

class Blocks final : public ServerBlocks {
 public:
  explicit Blocks(Space& space) : space_(space) {}

  Limits limits() const override {
    return {.block_bytes = space_.block_bytes(),
            .largest_value_bytes = std::size_t{4} << 20,
            .largest_batch_bytes = std::min(std::size_t{16} << 20, kMostBlocks * space_.block_bytes()),
            .largest_batch_operations = 4096,
            .best_run_bytes = std::size_t{256} << 10};
  }
  Capabilities more_capabilities() const override {
    auto more = static_cast<Capabilities>(Capability::kAtomicBatch);
    if (space_.is_kept() && !space_.client().is_emulator()) {
      more |= static_cast<Capabilities>(Capability::kSurvivesFailover);
    }
    return more;
  }
  grpc::Status get(std::span<Get> batch) override { return get_blocks(space_, batch); }
  grpc::Status put(std::span<Put> batch) override { return put_blocks(space_, batch); }
  grpc::Status erase(std::uint64_t first, std::uint64_t last) override { return erase_blocks(space_, first, last); }
  Answer<std::int64_t> add(std::string_view counter, std::int64_t delta) override {
    auto value = add_to(space_, counter, delta);
    if (!value && delta != 0 && reply_of(value.error()) == Reply::kUnclear) {
      return tl::unexpected(grpc::Status(grpc::StatusCode::UNKNOWN, value.error().error_message()));
    }
    return value;
  }
  Answer<std::uint64_t> count() override { return count_blocks(space_); }
  Answer<std::vector<BlockRun>> runs_from(std::uint64_t first) override { return spanner::runs_from(space_, first); }
  Answer<std::vector<NamedCounter>> counters() override { return all_counters(space_); }
  std::size_t overhead_bytes() const override { return space_.name().size() + 2 * sizeof(std::uint64_t); }

 private:
  Space& space_;
};

}  // namespace
}  // namespace spanner

store::StoreResult open_spanner(const std::string& place, const store::Parameters& parameters,
                                const StoreOptions& options) {
  return open_server_store<spanner::Client, spanner::Space, spanner::Blocks>(place, parameters, options);
}

const store::Keeper kSpannerKeeper = keeper_of<spanner::Client, spanner::Stores>();

}  // namespace farheap::engines
