// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stores of a Datastore: entities of one kind (docs/formats.md).
//
// Thread-safety: any thread.
#pragma once

#include "engines/datastore/client.hpp"
#include "engines/space/registry.hpp"

namespace farheap::engines::datastore {

inline constexpr char kAbout[] = "about";  // properties of a store's description
inline constexpr char kBeat[] = "beat";
inline constexpr char kVersion[] = "v";  // of blocks and slots

// The name of a store's description, with which those of all its entities begin.
[[nodiscard]] inline std::string entity_name(const StoreKey& key) {
  return key.id.empty() ? key.name : key.name + "/s/" + key.id;
}
[[nodiscard]] Found found_in(const api::Entity& description);
[[nodiscard]] std::uint64_t now_us();
// All entities of a store; what says that it is there goes last.
[[nodiscard]] grpc::Status remove_entities(Client& client, const std::string& store);

class Stores final : public Registry {
 public:
  explicit Stores(Client& client) : client_(client) {}

  ServerClient& server() override { return client_; }
  const std::string& own_name() const override { return client_.place().name; }
  std::string shown_as(const std::string& name) const override;
  std::string_view form() const override { return "datastore://PROJECT/NAME"; }
  Answer<std::optional<Found>> find(const StoreKey& key) override;
  Answer<std::optional<std::string>> foreign(const std::string& name) override;
  Answer<std::vector<std::string>> names() override;
  Answer<std::vector<Scratch>> scratch_below(const std::string& name) override;
  grpc::Status remove(const std::string& name) override { return remove_entities(client_, name); }
  grpc::Status collect(const std::string& name, const Scratch& scratch) override;

 private:
  Client& client_;
};

}  // namespace farheap::engines::datastore
