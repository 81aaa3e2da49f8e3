// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A store's part of a database. Its epoch grows by one with every opening.
//
// Thread-safety: any thread.
#pragma once

#include <memory>

#include "engines/space/space.hpp"
#include "engines/space/version_clock.hpp"
#include "engines/spanner/registry.hpp"

namespace farheap::engines::spanner {

class Space final : public ServerSpace {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Space>> open(std::unique_ptr<Client> client, const StoreOptions& options);
  ~Space() override;

  [[nodiscard]] Client& client() { return *client_; }
  [[nodiscard]] const std::string& name() const { return name_; }  // in the tables
  [[nodiscard]] VersionClock& clock() { return clock_; }

 private:
  Space(std::unique_ptr<Client> client, std::unique_ptr<Stores> stores, const StoreOptions& options);
  [[nodiscard]] Status prepare() override;
  [[nodiscard]] grpc::Status make(const About& about) override;
  [[nodiscard]] Answer<std::uint64_t> begin() override;
  void beat() override;

  std::unique_ptr<Client> client_;
  std::unique_ptr<Stores> stores_;
  std::string name_;
  VersionClock clock_;
};

}  // namespace farheap::engines::spanner
