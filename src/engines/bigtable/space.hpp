// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A store's part of a table. Its epoch grows by one with every opening.
//
// Thread-safety: any thread.
#pragma once

#include <memory>

#include "engines/bigtable/client.hpp"
#include "engines/bigtable/registry.hpp"
#include "engines/space/space.hpp"

namespace farheap::engines::bigtable {

class Space final : public ServerSpace {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Space>> open(std::unique_ptr<Client> client, const StoreOptions& options);
  ~Space() override;

  [[nodiscard]] Client& client() { return *client_; }
  [[nodiscard]] const Keys& keys() const { return keys_; }
  [[nodiscard]] VersionClock& clock() { return stores_->clock(); }

 private:
  Space(std::unique_ptr<Client> client, std::unique_ptr<Stores> stores, const StoreOptions& options);
  [[nodiscard]] Status prepare() override;
  [[nodiscard]] grpc::Status make(const About& about) override;
  [[nodiscard]] Answer<std::uint64_t> begin() override;
  void beat() override { (void)try_to_beat(); }
  [[nodiscard]] std::string beat_key() const { return keys_of({key().name}).beats() + key().id; }
  [[nodiscard]] grpc::Status try_to_beat();
  [[nodiscard]] Status make_table_if_missing();
  [[nodiscard]] Status look_at_clock();

  std::unique_ptr<Client> client_;
  std::unique_ptr<Stores> stores_;
  Keys keys_;
  std::uint64_t last_beat_ = 0;  // 0: not registered
};

}  // namespace farheap::engines::bigtable
