// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fmt/format.h>

#include <algorithm>

#include "engines/bigtable/space.hpp"
#include "engines/engine_table.hpp"

namespace farheap::engines {
namespace bigtable {
namespace {

// What the row "m" below a prefix says; nothing if there is none, or if there is no table.
Answer<std::optional<About>> about_below(Client& client, const Keys& keys) {
  const auto rows = client.read(row_of(keys.about()));
  if (!rows && rows.error().error_code() == grpc::StatusCode::NOT_FOUND) return std::optional<About>();
  if (!rows) return tl::unexpected(rows.error());
  const auto* cell = rows->empty() ? nullptr : rows->front().find(kAbout);
  return cell != nullptr ? about_in(cell->value) : std::nullopt;
}

Result<bool> is_there(const std::string& place, const store::Parameters& parameters, const StoreOptions& /*options*/) {
  auto client = Client::open(place, parameters);
  if (!client) return fail(std::move(client.error()));
  const auto about = about_below(**client, Keys{(*client)->place().store_name() + "/"});
  if (!about) return fail((*client)->error(about.error(), "cannot look for the store"));
  return about->has_value();
}

grpc::Status list_below(Client& client, const std::string& name, std::vector<StoreListing>& all) {
  const Keys keys{name + "/"};
  auto place = client.place();
  if (name != kUsualName || !place.name.empty()) place.name = name;
  const auto about = about_below(client, keys);
  if (!about) return about.error();
  if (*about) all.push_back({place.describe(), (*about)->block_bytes, Lifetime::kKeep, false});
  const auto found = scratch_stores(client, keys, VersionClock());
  if (!found) return found.error();
  for (const auto& scratch : *found) {
    const auto its = about_below(client, Keys{keys.scratch(scratch.id)});
    if (!its) return its.error();
    all.push_back({place.describe(), *its ? (*its)->block_bytes : 0, Lifetime::kScratch, !scratch.is_stale});
  }
  return {};
}

// The names in a table, found by leaping from each to the first key behind it.
Answer<std::vector<std::string>> names_in_table(Client& client) {
  std::vector<std::string> names;
  std::string from;
  for (;;) {
    api::ReadRowsRequest request;
    request.mutable_rows()->add_row_ranges()->set_start_key_closed(from);
    request.set_rows_limit(1);
    auto& filters = *request.mutable_filter()->mutable_chain();
    filters.add_filters()->set_cells_per_row_limit_filter(1);
    filters.add_filters()->set_strip_value_transformer(true);
    const auto rows = client.read(std::move(request));
    if (!rows && rows.error().error_code() == grpc::StatusCode::NOT_FOUND) return names;
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

Result<std::vector<StoreListing>> list(const std::string& place, const store::Parameters& parameters,
                                       const StoreOptions& /*options*/) {
  auto client = Client::open(place, parameters);
  if (!client) return fail(std::move(client.error()));
  constexpr char kWhat[] = "cannot list the stores";
  Answer<std::vector<std::string>> names = std::vector{(*client)->place().name};
  if ((*client)->place().name.empty()) names = names_in_table(**client);
  if (!names) return fail((*client)->error(names.error(), kWhat));
  std::vector<StoreListing> all;
  for (const auto& name : *names) {
    const auto status = list_below(**client, name, all);
    if (status.error_code() == grpc::StatusCode::NOT_FOUND) continue;
    if (!status.ok()) return fail((*client)->error(status, kWhat));
  }
  return all;
}

Status remove(const std::string& place, const store::Parameters& parameters, const StoreOptions& /*options*/) {
  auto client = Client::open(place, parameters);
  if (!client) return fail(std::move(client.error()));
  constexpr char kWhat[] = "cannot remove the store";
  const Keys keys{(*client)->place().store_name() + "/"};
  const auto about = about_below(**client, keys);
  if (!about) return fail((*client)->error(about.error(), kWhat));
  const auto found = scratch_stores(**client, keys, VersionClock());
  if (!found && found.error().error_code() != grpc::StatusCode::NOT_FOUND) {
    return fail((*client)->error(found.error(), kWhat));
  }
  const auto left = found ? std::ranges::count(*found, true, &Scratch::is_stale) : 0;
  if (!*about && left == 0) {
    return fail(ErrorCode::kNotFound, kWhat, (*client)->place().describe(), "there is none");
  }
  grpc::Status status;
  for (const auto& scratch : *found) {
    if (status.ok() && scratch.is_stale) status = collect_scratch(**client, keys, scratch);
  }
  // What says that it is there goes last, so that what was interrupted can be done again.
  for (const auto& prefix : {keys.blocks(), keys.counters(), keys.about()}) {
    if (status.ok() && *about) status = (*client)->drop_rows(prefix);
  }
  if (!status.ok()) return fail((*client)->error(status, kWhat));
  return {};
}

}  // namespace
}  // namespace bigtable

const store::Keeper kBigtableKeeper{.is_there = bigtable::is_there, .list = bigtable::list, .remove = bigtable::remove};

}  // namespace farheap::engines
