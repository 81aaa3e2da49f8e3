// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/engine_table.hpp"
#include "engines/etcd/space.hpp"

namespace farheap::engines {
namespace etcd {
namespace {

Answer<std::optional<About>> about_below(Client& client, const Keys& keys) {
  api::RangeRequest request;
  request.set_key(keys.about());
  const auto found = client.range(request);
  if (!found) return tl::unexpected(found.error());
  return found->kvs_size() > 0 ? about_in(found->kvs(0).value()) : std::nullopt;
}

Result<bool> is_there(const std::string& place, const store::Parameters& parameters, const StoreOptions& options) {
  auto client = Client::open(place, parameters, options);
  if (!client) return fail(std::move(client.error()));
  const auto about = about_below(**client, keys_of((*client)->place().store_name()));
  if (!about) return fail((*client)->error(about.error(), "cannot look for the store"));
  return about->has_value();
}

// The parts behind `prefix` up to the next '/', found by leaping from each to the first key behind it.
Answer<std::vector<std::string>> names_below(Client& client, const std::string& prefix) {
  std::vector<std::string> names;
  api::RangeRequest request;
  request.set_range_end(behind(prefix));
  request.set_limit(1);
  request.set_keys_only(true);
  for (std::string from = prefix;;) {
    request.set_key(from);
    const auto found = client.range(request);
    if (!found) return tl::unexpected(found.error());
    if (found->kvs_size() == 0) return names;
    const auto& key = found->kvs(0).key();
    const auto slash = key.find('/', prefix.size());
    if (slash == std::string::npos) {  // not one of ours
      from = key + '\0';
      continue;
    }
    names.push_back(key.substr(prefix.size(), slash - prefix.size()));
    from = behind(key.substr(0, slash + 1));
  }
}

grpc::Status list_below(Client& client, const std::string& name, std::vector<StoreListing>& all) {
  const Keys keys = keys_of(name);
  const bool is_named = name != "farheap" || !client.place().name.empty();
  const auto uri = is_named ? client.place().shown_as(name) : client.place().shown;
  const auto about = about_below(client, keys);
  if (!about) return about.error();
  if (*about) all.push_back({uri, (*about)->block_bytes, Lifetime::kKeep, false});
  const auto scratch = names_below(client, keys.scratch_stores());
  if (!scratch) return scratch.error();
  for (const auto& id : *scratch) {
    const auto its = about_below(client, Keys{keys.scratch_stores() + id + "/"});
    if (!its) return its.error();
    // Its lease keeps it: soon after its program's end it is gone.
    if (*its) all.push_back({uri, (*its)->block_bytes, Lifetime::kScratch, true});
  }
  return {};
}

Result<std::vector<StoreListing>> list(const std::string& place, const store::Parameters& parameters,
                                       const StoreOptions& options) {
  auto client = Client::open(place, parameters, options);
  if (!client) return fail(std::move(client.error()));
  constexpr char kWhat[] = "cannot list the stores";
  Answer<std::vector<std::string>> names = std::vector{(*client)->place().name};
  if ((*client)->place().name.empty()) names = names_below(**client, "farheap/");
  if (!names) return fail((*client)->error(names.error(), kWhat));
  std::vector<StoreListing> all;
  for (const auto& name : *names) {
    if (const auto status = list_below(**client, name, all); !status.ok()) {
      return fail((*client)->error(status, kWhat));
    }
  }
  return all;
}

// In one transaction; scratch stores below the name stay, because their leases end them.
Status remove(const std::string& place, const store::Parameters& parameters, const StoreOptions& options) {
  auto client = Client::open(place, parameters, options);
  if (!client) return fail(std::move(client.error()));
  constexpr char kWhat[] = "cannot remove the store";
  const Keys keys = keys_of((*client)->place().store_name());
  api::TxnRequest request;
  auto& there = *request.add_compare();
  there.set_key(keys.about());
  there.set_target(api::Compare::CREATE);
  there.set_result(api::Compare::GREATER);
  there.set_create_revision(0);
  for (const auto& [from, to] :
       {std::pair(keys.prefix, keys.scratch_stores()), std::pair(behind(keys.scratch_stores()), behind(keys.prefix))}) {
    auto& erased = *request.add_success()->mutable_request_delete_range();
    erased.set_key(from);
    erased.set_range_end(to);
  }
  const auto removed = (*client)->transact(request);
  if (!removed) return fail((*client)->error(removed.error(), kWhat));
  if (removed->succeeded()) return {};
  return fail(ErrorCode::kNotFound, kWhat, (*client)->place().shown, "there is none");
}

}  // namespace
}  // namespace etcd

const store::Keeper kEtcdKeeper{.is_there = etcd::is_there, .list = etcd::list, .remove = etcd::remove};

}  // namespace farheap::engines
