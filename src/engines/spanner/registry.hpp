// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stores of a Spanner database: rows of one table (docs/formats.md).
//
// Thread-safety: any thread.
#pragma once

#include "engines/space/registry.hpp"
#include "engines/spanner/client.hpp"

namespace farheap::engines::spanner {

// A row of the table of stores.
struct StoreRow {
  std::string name;  // "NAME", of a scratch store "NAME/ID"
  About about;
  std::uint64_t epoch = 0;
  std::uint64_t beat = 0;  // microseconds since 1970; of scratch stores
};
[[nodiscard]] inline std::string row_name(const StoreKey& key) {
  return key.id.empty() ? key.name : key.name + "/" + key.id;
}
// As the transaction sees it.
[[nodiscard]] Answer<std::optional<StoreRow>> read_store(Transaction& transaction, const std::string& name);
void write_store(Transaction& transaction, const StoreRow& row);
[[nodiscard]] std::uint64_t now_us();

class Stores final : public Registry {
 public:
  explicit Stores(Client& client) : client_(client) {}

  ServerClient& server() override { return client_; }
  const std::string& own_name() const override { return client_.place().name; }
  std::string shown_as(const std::string& name) const override;
  std::string_view form() const override { return "spanner://PROJECT/INSTANCE/DATABASE/NAME"; }
  Answer<std::optional<Found>> find(const StoreKey& key) override;
  Answer<std::optional<std::string>> foreign(const std::string& name) override;
  Answer<std::vector<std::string>> names() override;
  Answer<std::vector<Scratch>> scratch_below(const std::string& name) override;
  grpc::Status remove(const std::string& name) override;
  grpc::Status collect(const std::string& name, const Scratch& scratch) override;

 private:
  Client& client_;
};

// With all that it holds; with `beat` only if that is its last one.
[[nodiscard]] grpc::Status remove_row(Client& client, const std::string& name,
                                      std::optional<std::uint64_t> beat = std::nullopt);

}  // namespace farheap::engines::spanner
