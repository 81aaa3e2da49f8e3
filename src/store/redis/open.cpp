// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// redis:, rediss: and redis+cluster: as kinds.cpp knows them.
#include <fmt/format.h>

#include "base/random_number.hpp"
#include "store/batch.hpp"
#include "store/kinds.hpp"
#include "store/redis/redis_store.hpp"

namespace farheap::store {
namespace {

using namespace redis;

// What a keeper needs: nothing of a namespace.
struct Visit {
  explicit Visit(Place place)
      : shared(std::move(place), "keeper"), lanes(shared), lane(lanes.take()), caller(shared, *lane) {
    caller.exchange().set_hasty();
  }
  Shared shared;
  Lanes lanes;
  Lanes::Guard lane;
  Caller caller;
};

Result<std::unique_ptr<Visit>> visit(const std::string& text, const Parameters& parameters,
                                     const StoreOptions& options) {
  auto place = parse_place(text, parameters, options);
  if (!place) return fail(std::move(place.error()));
  auto visit = std::make_unique<Visit>(std::move(*place));
  if (Status reached = reach_servers(visit->caller); !reached) return fail(std::move(reached.error()));
  return visit;
}

Result<bool> is_there(const std::string& text, const Parameters& parameters, const StoreOptions& options) {
  auto here = visit(text, parameters, options);
  if (!here) return fail(std::move(here.error()));
  auto meta = read_meta((*here)->caller, (*here)->shared.place.name);
  if (!meta) return fail(std::move(meta.error()));
  return meta->is_there && meta->lifetime == Lifetime::kKeep;
}

Result<std::vector<std::string>> names_there(Caller& caller) {
  constexpr std::string_view kStart = "farheap:{", kEnd = ":meta}";
  constexpr std::string_view kWhat = "cannot list stores";
  std::vector<std::string> names;
  std::size_t bytes = 0;
  Status listed = caller.each_key("farheap:{*:meta}", kWhat, [&](const auto& keys) -> Status {
    for (const auto& key : keys) {
      if (!key.starts_with(kStart) || !key.ends_with(kEnd) || key.size() < kStart.size() + kEnd.size()) continue;
      names.push_back(key.substr(kStart.size(), key.size() - kStart.size() - kEnd.size()));
      if ((bytes += key.size()) > kMostCollected) return caller.too_many(kWhat);
    }
    return {};
  });
  if (!listed) return fail(std::move(listed.error()));
  std::ranges::sort(names);
  const auto rest = std::ranges::unique(names);
  names.erase(rest.begin(), rest.end());
  return names;
}

Result<bool> is_in_use(Caller& caller, const std::string& parent, const std::string& id) {
  auto all = scratch_below(caller, parent);
  if (!all) return fail(std::move(all.error()));
  return std::ranges::any_of(*all, [&](const auto& one) { return one.id == id && one.is_in_use; });
}

Result<std::vector<StoreListing>> list(const std::string& text, const Parameters& parameters,
                                       const StoreOptions& options) {
  auto here = visit(text, parameters, options);
  if (!here) return fail(std::move(here.error()));
  const Place& place = (*here)->shared.place;
  Caller& caller = (*here)->caller;
  auto names = names_there(caller);
  if (!names) return fail(std::move(names.error()));
  std::vector<StoreListing> all;
  for (const auto& name : *names) {
    const auto tilde = name.rfind('~');
    if (place.is_named && name != place.name && name.substr(0, tilde) != place.name) continue;
    auto meta = read_meta(caller, name);
    if (!meta) return fail(std::move(meta.error()));
    if (!meta->is_there) continue;  // removed meanwhile
    StoreListing& one = all.emplace_back();
    one = {.uri = place.uri_of(name), .block_bytes = meta->block_bytes, .lifetime = meta->lifetime};
    if (meta->lifetime == Lifetime::kKeep || tilde == std::string::npos) continue;
    auto used = is_in_use(caller, name.substr(0, tilde), name.substr(tilde + 1));
    if (!used) return fail(std::move(used.error()));
    one.in_use = *used;
  }
  return all;
}

Status remove(const std::string& text, const Parameters& parameters, const StoreOptions& options) {
  auto here = visit(text, parameters, options);
  if (!here) return fail(std::move(here.error()));
  const Place& place = (*here)->shared.place;
  Caller& caller = (*here)->caller;
  auto meta = read_meta(caller, place.name);
  if (!meta) return fail(std::move(meta.error()));
  const auto tilde = place.name.rfind('~');
  if (!meta->is_there) {
    auto leftovers = remove_leftovers(caller, place.name);
    if (!leftovers) return fail(std::move(leftovers.error()));
    if (*leftovers) return {};
    return fail(ErrorCode::kNotFound, "cannot remove a store", place.shown,
                fmt::format("there is no store of the name {}", place.name), "`farheap store ls` lists what is there");
  }
  if (meta->lifetime == Lifetime::kKeep || tilde == std::string::npos) return remove_namespace(caller, place.name);
  const auto parent = place.name.substr(0, tilde), id = place.name.substr(tilde + 1);
  auto used = is_in_use(caller, parent, id);
  if (!used) return fail(std::move(used.error()));
  if (*used) {
    return fail(ErrorCode::kConflict, "cannot remove a store", place.shown, "a program uses it",
                "end the program first");
  }
  return remove_scratch(caller, parent, id);
}

}  // namespace

StoreResult open_redis(const std::string& text, const Parameters& parameters, const StoreOptions& options) {
  auto place = parse_place(text, parameters, options);
  if (!place) return fail(std::move(place.error()));
  if (auto ok = check_block_bytes(options.block_bytes, place->shown); !ok) return fail(std::move(ok.error()));
  if (place->name.find('~') != std::string::npos) {
    return fail(ErrorCode::kInvalidArgument, "cannot open the store", place->shown,
                "a name with '~' is of a scratch store", "take another name; `farheap store rm` removes it");
  }
  std::string name = place->name;
  if (options.lifetime == Lifetime::kScratch) name += fmt::format("~{:016x}", base::random_number());
  auto store = std::make_unique<RedisStore>(std::move(*place), name, options);
  if (auto ok = store->open(); !ok) return fail(std::move(ok.error()));
  return store;
}

StoreResult open_redis_cluster(const std::string& text, const Parameters& parameters, const StoreOptions& options) {
  return open_redis(text, parameters, options);
}

const Keeper kRedisKeeper{is_there, list, store::remove};
const Keeper kRedisClusterKeeper{is_there, list, store::remove};

}  // namespace farheap::store
