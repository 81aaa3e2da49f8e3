// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stores of a Bigtable table (docs/formats.md).
//
// Scratch stores: where a beat stops, the next opener takes the beat away first and the rows after it, so that a
// program that was only frozen finds out before it reads a row that is gone.
//
// Thread-safety: any thread.
#pragma once

#include "engines/bigtable/client.hpp"
#include "engines/space/registry.hpp"
#include "engines/space/version_clock.hpp"

namespace farheap::engines::bigtable {

[[nodiscard]] inline Keys keys_of(const StoreKey& key) {
  const Keys kept{key.name + "/"};
  return key.id.empty() ? kept : Keys{kept.scratch(key.id)};
}

class Stores final : public Registry {
 public:
  explicit Stores(Client& client) : client_(client) {}
  [[nodiscard]] VersionClock& clock() { return clock_; }

  ServerClient& server() override { return client_; }
  const std::string& own_name() const override { return client_.place().name; }
  std::string shown_as(const std::string& name) const override;
  std::string_view form() const override { return "bigtable://PROJECT/INSTANCE/TABLE/NAME"; }
  Answer<std::optional<Found>> find(const StoreKey& key) override;
  Answer<std::optional<std::string>> foreign(const std::string& name) override;
  // By leaping from each to the first key behind it.
  Answer<std::vector<std::string>> names() override;
  Answer<std::vector<Scratch>> scratch_below(const std::string& name) override;
  grpc::Status remove(const std::string& name) override;
  // A beat of 0 is stale: what was not collected to the end is collected again.
  grpc::Status collect(const std::string& name, const Scratch& scratch) override;

 private:
  Client& client_;
  VersionClock clock_;
};

}  // namespace farheap::engines::bigtable
