// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>

#include "engines/engine_table.hpp"
#include "engines/spanner/space.hpp"

namespace farheap::engines {
namespace spanner {
namespace {

Result<bool> is_there(const std::string& place, const store::Parameters& parameters, const StoreOptions& /*options*/) {
  auto client = Client::open(place, parameters);
  if (!client) return fail(std::move(client.error()));
  const auto found = stores_of(**client, (*client)->place().store_name(), false);
  if (!found) return fail((*client)->error(found.error(), "cannot look for the store"));
  return !found->empty();
}

Result<std::vector<StoreListing>> list(const std::string& place, const store::Parameters& parameters,
                                       const StoreOptions& /*options*/) {
  auto client = Client::open(place, parameters);
  if (!client) return fail(std::move(client.error()));
  const auto found = stores_of(**client, (*client)->place().name, true);
  if (!found) return fail((*client)->error(found.error(), "cannot list the stores"));
  std::vector<StoreListing> all;
  for (const auto& about : *found) {
    auto its_place = (*client)->place();
    const auto name = about.name.substr(0, about.name.find('/'));
    const bool is_scratch = name != about.name;
    if (name != kUsualName || !its_place.name.empty()) its_place.name = name;
    all.push_back({its_place.describe(), static_cast<std::size_t>(about.block_bytes),
                   is_scratch ? Lifetime::kScratch : Lifetime::kKeep, is_scratch && !is_stale(about)});
  }
  return all;
}

Status remove(const std::string& place, const store::Parameters& parameters, const StoreOptions& /*options*/) {
  auto client = Client::open(place, parameters);
  if (!client) return fail(std::move(client.error()));
  constexpr char kWhat[] = "cannot remove the store";
  const auto name = (*client)->place().store_name();
  const auto found = stores_of(**client, name, true);
  if (!found) return fail((*client)->error(found.error(), kWhat));
  bool any = false;
  for (const auto& about : *found) {
    if (about.name != name && !is_stale(about)) continue;  // of a program that runs
    any = true;
    if (const auto status = remove_store(**client, about); !status.ok()) return fail((*client)->error(status, kWhat));
  }
  if (!any) return fail(ErrorCode::kNotFound, kWhat, (*client)->place().describe(), "there is none");
  return {};
}

}  // namespace
}  // namespace spanner

const store::Keeper kSpannerKeeper{.is_there = spanner::is_there, .list = spanner::list, .remove = spanner::remove};

}  // namespace farheap::engines
