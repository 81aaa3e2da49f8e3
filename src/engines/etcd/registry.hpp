// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stores of an etcd cluster and the keys of each (docs/formats.md). Leases end what killed programs left: no
// scratch store is ever stale.
//
// Thread-safety: any thread.
#pragma once

#include "engines/etcd/client.hpp"
#include "engines/space/registry.hpp"

namespace farheap::engines::etcd {

struct Keys {
  std::string prefix;  // "farheap/NAME/"
  [[nodiscard]] std::string about() const { return prefix + "m"; }
  [[nodiscard]] std::string blocks() const { return prefix + "b/"; }
  [[nodiscard]] std::string block(std::uint64_t number) const;
  [[nodiscard]] std::uint64_t number_of(std::string_view block_key) const;
  [[nodiscard]] std::string counters() const { return prefix + "c/"; }
  [[nodiscard]] std::string counter(std::string_view name) const { return counters() + std::string(name); }
  [[nodiscard]] std::string scratch_stores() const { return prefix + "s/"; }
};
[[nodiscard]] Keys keys_of(const StoreKey& key);

class Stores final : public Registry {
 public:
  explicit Stores(Client& client) : client_(client) {}

  ServerClient& server() override { return client_; }
  const std::string& own_name() const override { return client_.place().name; }
  std::string shown_as(const std::string& name) const override { return client_.place().shown_as(name); }
  std::string_view form() const override { return "etcd://HOST:2379/NAME"; }
  Answer<std::optional<Found>> find(const StoreKey& key) override;
  Answer<std::optional<std::string>> foreign(const std::string& name) override;
  Answer<std::vector<std::string>> names() override;
  Answer<std::vector<Scratch>> scratch_below(const std::string& name) override;
  grpc::Status remove(const std::string& name) override;
  grpc::Status collect(const std::string& name, const Scratch& scratch) override;

 private:
  // The parts behind `prefix` up to the next '/', found by leaping from each to the first key behind it.
  [[nodiscard]] Answer<std::vector<std::string>> parts_behind(const std::string& prefix);

  Client& client_;
};

}  // namespace farheap::engines::etcd
