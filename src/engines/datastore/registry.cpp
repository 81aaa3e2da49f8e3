// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/datastore/registry.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engines/space/version_clock.hpp"

namespace farheap::engines::datastore {
namespace {

constexpr int kMostStores = 10000;

}  // namespace

std::uint64_t now_us() { return VersionClock().now(); }

Found found_in(const api::Entity& description) { return {text_in(description, kAbout)}; }

grpc::Status remove_entities(Client& client, const std::string& store) {
  for (const auto* kind : {kBlockKind, kCounterKind, kSlotKind}) {
    // Not what is below "NAME/s/", which are stores of their own.
    for (const auto& [from, to] : {std::pair(store + "/", store + "/s/"), std::pair(store + "/s0", store + "0")}) {
      if (const auto status = client.remove_between(kind, from, to); !status.ok()) return status;
    }
  }
  api::Mutation last;
  client.set_key(*last.mutable_delete_(), kStoreKind, store);
  return client.mutate({last});
}

std::string Stores::shown_as(const std::string& name) const {
  auto place = client_.place();
  place.name = name;
  return place.describe();
}

Answer<std::optional<Found>> Stores::find(const StoreKey& key) {
  const auto found = client_.find(kStoreKind, entity_name(key));
  if (!found) return tl::unexpected(found.error());
  return *found ? std::optional(found_in(**found)) : std::nullopt;
}

Answer<std::optional<std::string>> Stores::foreign(const std::string& name) {
  for (const auto* kind : {kBlockKind, kCounterKind}) {
    for (const auto& [from, to] : {std::pair(name + "/", name + "/s/"), std::pair(name + "/s0", name + "0")}) {
      const auto found = client_.query(client_.names_between(kind, from, to), true, 1);
      if (!found) return tl::unexpected(found.error());
      if (!found->empty()) return fmt::format("the entity {} '{}'", kind, name_of(found->front().key()));
    }
  }
  return std::optional<std::string>();
}

Answer<std::vector<std::string>> Stores::names() {
  const auto found = client_.query(client_.names_between(kStoreKind, "-", "~"), true, kMostStores);
  if (!found) return tl::unexpected(found.error());
  std::vector<std::string> names;
  for (const auto& entity : *found) {
    const auto& whole = name_of(entity.key());
    auto name = whole.substr(0, whole.find('/'));
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

Answer<std::vector<Scratch>> Stores::scratch_below(const std::string& name) {
  const auto below = name + "/s/";
  const auto found = client_.query(client_.names_between(kStoreKind, below, name + "/s0"), false, kMostStores);
  if (!found) return tl::unexpected(found.error());
  constexpr auto kStale = static_cast<std::uint64_t>(std::chrono::microseconds(kStaleAfter).count());
  std::vector<Scratch> all;
  for (const auto& entity : *found) {
    const auto about = about_in(text_in(entity, kAbout));
    if (!about) continue;
    const auto beat = number_in(entity, kBeat);
    all.push_back({.id = name_of(entity.key()).substr(below.size()),
                   .block_bytes = about->block_bytes,
                   .beat = beat,
                   .is_stale = beat + kStale < now_us()});
  }
  return all;
}

grpc::Status Stores::collect(const std::string& name, const Scratch& scratch) {
  const auto store = entity_name({name, scratch.id});
  const auto now = client_.find(kStoreKind, store);
  if (!now) return now.error();
  if (*now == nullptr || number_in(**now, kBeat) != scratch.beat) return {};
  return remove_entities(client_, store);
}

}  // namespace farheap::engines::datastore
