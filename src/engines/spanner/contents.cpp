// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a store holds, for those who copy it.
#include "store/contents.hpp"
#include "engines/spanner/blocks.hpp"

namespace farheap::engines::spanner {

Answer<std::uint64_t> count_blocks(Space& space) {
  api::ExecuteSqlRequest request;
  request.set_sql(std::string("SELECT COUNT(*) FROM ") + kBlocks + " WHERE Name = @name");
  (*request.mutable_params()->mutable_fields())["name"].set_string_value(space.name());
  (*request.mutable_param_types())["name"].set_code(api::TypeCode::STRING);
  const auto rows = space.client().query(std::move(request));
  if (!rows) return tl::unexpected(rows.error());
  const auto count = rows->empty() ? std::nullopt : number_in(rows->front().front());
  if (!count) return tl::unexpected(grpc::Status(grpc::StatusCode::DATA_LOSS, "the count is no number"));
  return static_cast<std::uint64_t>(*count);
}

Answer<std::vector<BlockRun>> runs_from(Space& space, std::uint64_t first) {
  constexpr std::int64_t kAtOnce = 10000;
  api::ReadRequest request;
  request.set_table(kBlocks);
  request.add_columns("Block");
  add_blocks(*request.mutable_key_set(), space.name(), first, ~std::uint64_t{0});
  request.set_limit(kAtOnce);
  const auto rows = space.client().read(std::move(request));  // in the order of the key
  if (!rows) return tl::unexpected(rows.error());
  std::vector<BlockRun> runs;
  for (const auto& row : *rows) {
    if (const auto number = number_in(row[0])) store::add_block(runs, block_of(*number));
  }
  return runs;
}

Answer<std::vector<NamedCounter>> all_counters(Space& space) {
  api::ReadRequest request;
  request.set_table(kCounters);
  for (const auto* column : {"Counter", "Value"}) request.add_columns(column);
  add_name(*request.mutable_key_set(), space.name());
  const auto rows = space.client().read(std::move(request));
  if (!rows) return tl::unexpected(rows.error());
  std::vector<NamedCounter> all;
  for (const auto& row : *rows) {
    const auto padding = row[0].size() - (row[0].find_last_not_of('=') + 1);
    std::string name(row[0].size() / 4 * 3 - padding, '\0');
    if (!from_base64(row[0], std::as_writable_bytes(std::span(name)))) {
      return tl::unexpected(grpc::Status(grpc::StatusCode::DATA_LOSS, "a counter's name is not base64"));
    }
    all.push_back({std::move(name), number_in(row[1]).value_or(0)});
  }
  return all;
}

}  // namespace farheap::engines::spanner
