// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// bigtable: one row for each block, so that runs may overlap as they like; a run is a range of rows. The layout is
// specified in docs/formats.md.
//
// What is guaranteed of puts to one block, without `expected`: those of one handle take effect in its order, and so do
// those of handles that have seen each other's versions. Puts of handles that have not are ordered by their clocks,
// which are put right by the server's where they are off by more than 50 ms. Compare-and-swap needs no clock.
// An erasure holds against puts of the same handle that are still under way somewhere.
#include "engines/bigtable/counter.hpp"
#include "engines/bigtable/get.hpp"
#include "engines/bigtable/put.hpp"
#include "engines/engine_table.hpp"
#include "engines/space/keeper.hpp"
#include "engines/space/server_store.hpp"
#include "store/contents.hpp"

namespace farheap::engines {
namespace bigtable {
namespace {

class Blocks final : public ServerBlocks {
 public:
  explicit Blocks(Space& space) : space_(space), writer_(space), counters_(space) {}

  Limits limits() const override {
    return {.block_bytes = space_.block_bytes(),
            .largest_value_bytes = std::size_t{4} << 20,
            .largest_batch_bytes = std::size_t{32} << 20,
            .largest_batch_operations = 8192,
            .best_run_bytes = std::size_t{512} << 10};
  }
  grpc::Status get(std::span<Get> batch) override { return get_blocks(space_, batch); }
  grpc::Status put(std::span<Put> batch) override { return writer_.put(batch); }
  grpc::Status erase(std::uint64_t first, std::uint64_t last) override { return writer_.erase(first, last); }
  Answer<std::int64_t> add(std::string_view counter, std::int64_t delta) override {
    return counters_.add(counter, delta);
  }

  Answer<std::uint64_t> count() override {
    std::uint64_t count = 0;
    const auto status = each_block(0, [&](std::span<const std::string> keys) {
      count += keys.size();
      return true;
    });
    if (!status.ok()) return tl::unexpected(status);
    return count;
  }
  Answer<std::vector<BlockRun>> runs_from(std::uint64_t first) override {
    std::vector<BlockRun> runs;
    const auto status = each_block(first, [&](std::span<const std::string> keys) {
      for (const auto& key : keys) {
        if (const auto number = space_.keys().number_of(key)) store::add_block(runs, *number);
      }
      return runs.empty();
    });
    if (!status.ok()) return tl::unexpected(status);
    return runs;
  }
  Answer<std::vector<NamedCounter>> counters() override { return counters_.all(); }
  std::size_t overhead_bytes() const override { return space_.keys().block(0).size() + kVersionBytes; }

 private:
  template <class Visit>
  grpc::Status each_block(std::uint64_t first, Visit visit) {
    auto request = rows_with(space_.keys().blocks());
    request.mutable_rows()->mutable_row_ranges(0)->set_start_key_closed(space_.keys().block(first));
    // Longer than a version: erased blocks may have left a cell.
    auto& filters = *request.mutable_filter()->mutable_chain();
    filters.add_filters()->set_cells_per_column_limit_filter(1);
    filters.add_filters()->set_value_regex_filter("\\C{9}\\C*");
    return space_.client().each_key(std::move(request), visit);
  }

  Space& space_;
  Writer writer_;
  Counters counters_;
};

}  // namespace
}  // namespace bigtable

store::StoreResult open_bigtable(const std::string& place, const store::Parameters& parameters,
                                 const StoreOptions& options) {
  return open_server_store<bigtable::Client, bigtable::Space, bigtable::Blocks>(place, parameters, options);
}

const store::Keeper kBigtableKeeper = keeper_of<bigtable::Client, bigtable::Stores>();

}  // namespace farheap::engines
