// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/bigtable/registry.hpp"

#include <fmt/format.h>

#include <limits>

namespace farheap::engines::bigtable {
namespace {

// The keys of what is below a name: its kept store's, not those of scratch stores.
api::ReadRowsRequest kept_rows(const Keys& keys) {
  api::ReadRowsRequest request;
  const auto add = [&](const std::string& from, const std::string& to) {
    auto& range = *request.mutable_rows()->add_row_ranges();
    range.set_start_key_closed(from);
    range.set_end_key_open(to);
  };
  const auto scratch = keys.prefix + "s/";
  add(keys.prefix, scratch);
  add(behind(scratch), keys.beats());
  add(behind(keys.beats()), behind(keys.prefix));
  return request;
}

std::uint64_t number_in_cell(const Cell* cell) {
  return cell != nullptr && cell->value.size() == kVersionBytes ? number_in(cell->value) : 0;
}

}  // namespace

std::string Stores::shown_as(const std::string& name) const {
  auto place = client_.place();
  place.name = name;
  return place.describe();
}

Answer<std::optional<Found>> Stores::find(const StoreKey& key) {
  const auto rows = client_.read(row_of(keys_of(key).about()));
  if (!rows) return tl::unexpected(rows.error());
  const auto* cell = rows->empty() ? nullptr : rows->front().find(kAbout);
  if (cell == nullptr) return std::optional<Found>();
  return Found{cell->value, number_in_cell(rows->front().find(kEpoch))};
}

Answer<std::optional<std::string>> Stores::foreign(const std::string& name) {
  auto request = kept_rows(keys_of({name}));
  request.set_rows_limit(1);
  const auto rows = client_.read(std::move(request));
  if (!rows) return tl::unexpected(rows.error());
  if (rows->empty()) return std::optional<std::string>();
  return fmt::format("the row '{}'", rows->front().key);
}

Answer<std::vector<std::string>> Stores::names() {
  std::vector<std::string> names;
  std::string from;
  for (;;) {
    api::ReadRowsRequest request;
    request.mutable_rows()->add_row_ranges()->set_start_key_closed(from);
    request.set_rows_limit(1);
    auto& filters = *request.mutable_filter()->mutable_chain();
    filters.add_filters()->set_cells_per_row_limit_filter(1);
    filters.add_filters()->set_strip_value_transformer(true);
    const auto rows = client_.read(std::move(request));
    if (!rows) return tl::unexpected(rows.error());
    if (rows->empty()) return names;
    const auto& key = rows->front().key;
    const auto slash = key.find('/');
    if (slash == std::string::npos) {  // not one of ours
      from = key + '\0';
      continue;
    }
    names.push_back(key.substr(0, slash));
    from = behind(key.substr(0, slash + 1));
  }
}

Answer<std::vector<Scratch>> Stores::scratch_below(const std::string& name) {
  const auto beats = keys_of({name}).beats();
  auto request = rows_with(beats);
  newest_of(*request.mutable_filter(), kBeat);
  const auto rows = client_.read(std::move(request));
  if (!rows) return tl::unexpected(rows.error());
  constexpr auto kStale = static_cast<std::uint64_t>(std::chrono::microseconds(kStaleAfter).count());
  std::vector<Scratch> all;
  for (const auto& row : *rows) {
    if (row.cells.front().value.size() != kVersionBytes) continue;
    Scratch scratch{.id = row.key.substr(beats.size()), .beat = number_in(row.cells.front().value)};
    scratch.is_stale = scratch.beat + kStale < clock_.now();
    const auto found = find({name, scratch.id});
    if (!found) return tl::unexpected(found.error());
    const auto about = about_in(*found);
    scratch.block_bytes = about ? about->block_bytes : 0;
    all.push_back(std::move(scratch));
  }
  return all;
}

grpc::Status Stores::remove(const std::string& name) {
  const auto keys = keys_of({name});
  for (const auto& prefix : {keys.blocks(), keys.counters(), keys.about()}) {
    if (const auto status = client_.drop_rows(prefix); !status.ok()) return status;
  }
  return {};
}

grpc::Status Stores::collect(const std::string& name, const Scratch& scratch) {
  const auto key = keys_of({name}).beats() + scratch.id;
  if (scratch.beat != 0) {
    api::CheckAndMutateRowRequest request;
    request.set_row_key(key);
    newest_is(*request.mutable_predicate_filter(), kBeat, scratch.beat);
    set_cell(*request.mutable_true_mutations(), kBeat, std::numeric_limits<std::int64_t>::max() / 1000 * 1000,
             number_bytes(0));
    const auto taken = client_.check_and_mutate(std::move(request));
    if (!taken) return taken.error();
    if (!taken->matched && !taken->was_unclear) return {};
  }
  const auto dropped = client_.drop_rows(keys_of({name, scratch.id}).prefix);
  return dropped.ok() ? client_.delete_row(key) : dropped;
}

}  // namespace farheap::engines::bigtable
