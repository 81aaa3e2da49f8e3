// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/etcd/registry.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace farheap::engines::etcd {
namespace {

constexpr char kAll[] = "farheap/";

}  // namespace

std::string Keys::block(std::uint64_t number) const {
  std::string key = blocks();
  for (int shift = 56; shift >= 0; shift -= 8) key += static_cast<char>(number >> shift & 0xFF);
  return key;
}

std::uint64_t Keys::number_of(std::string_view block_key) const {
  std::uint64_t number = 0;
  for (const char c : block_key.substr(std::min(blocks().size(), block_key.size()))) {
    number = number << 8 | static_cast<unsigned char>(c);
  }
  return number;
}

Keys keys_of(const StoreKey& key) {
  Keys keys{kAll + key.name + "/"};
  if (!key.id.empty()) keys.prefix = keys.scratch_stores() + key.id + "/";
  return keys;
}

Answer<std::optional<Found>> Stores::find(const StoreKey& key) {
  api::RangeRequest request;
  request.set_key(keys_of(key).about());
  const auto found = client_.range(request);
  if (!found) return tl::unexpected(found.error());
  return found->kvs_size() > 0 ? std::optional(Found{found->kvs(0).value()}) : std::nullopt;
}

Answer<std::optional<std::string>> Stores::foreign(const std::string& name) {
  const auto keys = keys_of({name});
  for (const auto& [from, to] :
       {std::pair(keys.prefix, keys.about()), std::pair(keys.about() + '\0', keys.scratch_stores()),
        std::pair(behind(keys.scratch_stores()), behind(keys.prefix))}) {
    api::RangeRequest request;
    request.set_key(from);
    request.set_range_end(to);
    request.set_limit(1);
    request.set_keys_only(true);
    const auto found = client_.range(request);
    if (!found) return tl::unexpected(found.error());
    if (found->kvs_size() > 0) return fmt::format("the key '{}'", found->kvs(0).key());
  }
  return std::optional<std::string>();
}

Answer<std::vector<std::string>> Stores::parts_behind(const std::string& prefix) {
  std::vector<std::string> parts;
  api::RangeRequest request;
  request.set_range_end(behind(prefix));
  request.set_limit(1);
  request.set_keys_only(true);
  for (std::string from = prefix;;) {
    request.set_key(from);
    const auto found = client_.range(request);
    if (!found) return tl::unexpected(found.error());
    if (found->kvs_size() == 0) return parts;
    const auto& key = found->kvs(0).key();
    const auto slash = key.find('/', prefix.size());
    if (slash == std::string::npos) {  // not one of ours
      from = key + '\0';
      continue;
    }
    parts.push_back(key.substr(prefix.size(), slash - prefix.size()));
    from = behind(key.substr(0, slash + 1));
  }
}

Answer<std::vector<std::string>> Stores::names() { return parts_behind(kAll); }

Answer<std::vector<Scratch>> Stores::scratch_below(const std::string& name) {
  const auto ids = parts_behind(keys_of({name}).scratch_stores());
  if (!ids) return tl::unexpected(ids.error());
  std::vector<Scratch> all;
  for (const auto& id : *ids) {
    const auto found = find({name, id});
    if (!found) return tl::unexpected(found.error());
    const auto about = about_in(*found);
    if (about) all.push_back({.id = id, .block_bytes = about->block_bytes});
  }
  return all;
}

// In one transaction. Scratch stores below the name stay.
grpc::Status Stores::remove(const std::string& name) {
  const auto keys = keys_of({name});
  api::TxnRequest request;
  for (const auto& [from, to] :
       {std::pair(keys.prefix, keys.scratch_stores()), std::pair(behind(keys.scratch_stores()), behind(keys.prefix))}) {
    auto& erased = *request.add_success()->mutable_request_delete_range();
    erased.set_key(from);
    erased.set_range_end(to);
  }
  const auto removed = client_.transact(request);
  return removed ? grpc::Status() : removed.error();
}

grpc::Status Stores::collect(const std::string& /*name*/, const Scratch& /*scratch*/) { return {}; }

}  // namespace farheap::engines::etcd
