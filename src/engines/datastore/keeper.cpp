// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/datastore/space.hpp"
#include "engines/engine_table.hpp"

namespace farheap::engines {
namespace datastore {
namespace {

Answer<std::optional<About>> about_of(Client& client, const std::string& name) {
  const auto found = client.find(kStoreKind, name);
  if (!found) return tl::unexpected(found.error());
  return *found ? about_in(text_in(**found, kAbout)) : std::nullopt;
}

Result<bool> is_there(const std::string& place, const store::Parameters& parameters, const StoreOptions& /*options*/) {
  auto client = Client::open(place, parameters);
  if (!client) return fail(std::move(client.error()));
  const auto about = about_of(**client, (*client)->place().store_name());
  if (!about) return fail((*client)->error(about.error(), "cannot look for the store"));
  return about->has_value();
}

// Descriptions are entities of one kind, named by their store.
Result<std::vector<StoreListing>> list(const std::string& place, const store::Parameters& parameters,
                                       const StoreOptions& /*options*/) {
  auto client = Client::open(place, parameters);
  if (!client) return fail(std::move(client.error()));
  constexpr char kWhat[] = "cannot list the stores";
  constexpr int kMost = 10000;
  const auto& own = (*client)->place().name;
  const std::string from = own.empty() ? "-" : own, to = own.empty() ? "~" : own + "0";
  const auto found = (*client)->query((*client)->names_between(kStoreKind, from, to), false, kMost);
  if (!found) return fail((*client)->error(found.error(), kWhat));
  std::vector<StoreListing> all;
  std::string scanned;
  for (const auto& entity : *found) {
    const auto& whole = name_of(entity.key());
    const auto name = whole.substr(0, whole.find('/'));
    const auto about = about_in(text_in(entity, kAbout));
    if (!about || (!own.empty() && name != own)) continue;
    Place named = (*client)->place();
    named.name = name == "farheap" ? own : name;
    if (whole == name) {
      all.push_back({named.describe(), about->block_bytes, Lifetime::kKeep, false});
    } else if (scanned != name) {
      scanned = name;
      const auto scratch = scratch_stores(**client, name);
      if (!scratch) return fail((*client)->error(scratch.error(), kWhat));
      for (const auto& one : *scratch) {
        all.push_back({named.describe(), one.block_bytes, Lifetime::kScratch, !one.is_stale});
      }
    }
  }
  return all;
}

Status remove(const std::string& place, const store::Parameters& parameters, const StoreOptions& /*options*/) {
  auto client = Client::open(place, parameters);
  if (!client) return fail(std::move(client.error()));
  constexpr char kWhat[] = "cannot remove the store";
  const auto name = (*client)->place().store_name();
  const auto about = about_of(**client, name);
  if (!about) return fail((*client)->error(about.error(), kWhat));
  const auto scratch = scratch_stores(**client, name);
  if (!scratch) return fail((*client)->error(scratch.error(), kWhat));
  bool is_any = about->has_value();
  grpc::Status status;
  for (const auto& one : *scratch) {
    if (!one.is_stale || !status.ok()) continue;
    is_any = true;
    status = remove_store(**client, one.store);
  }
  if (status.ok() && *about) status = remove_store(**client, name);
  if (!status.ok()) return fail((*client)->error(status, kWhat));
  if (!is_any) return fail(ErrorCode::kNotFound, kWhat, (*client)->place().describe(), "there is none");
  return {};
}

}  // namespace
}  // namespace datastore

const store::Keeper kDatastoreKeeper{
    .is_there = datastore::is_there, .list = datastore::list, .remove = datastore::remove};

}  // namespace farheap::engines
