// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A store's part of a database: the row that says that it is there and whose it is (docs/formats.md), and how a
// scratch store goes away, by its program's end or, if that was killed, by the next that comes.
//
// Thread-safety: any thread.
#pragma once

#include <memory>

#include "engines/space/health.hpp"
#include "engines/space/version_clock.hpp"
#include "engines/spanner/client.hpp"

namespace farheap::engines::spanner {

// A row of the table of stores.
struct About {
  std::string name;  // "NAME", of a scratch store "NAME/ID"
  std::int64_t format = 0;
  std::int64_t block_bytes = 0;
  std::string identity;
  std::int64_t epoch = 0;
  std::int64_t beat = 0;  // microseconds since 1970; of scratch stores
};
void write_about(Transaction& transaction, const About& about);
[[nodiscard]] bool is_stale(const About& about);
// That of `name` and, where `and_below`, of the scratch stores below it; of all names, if it is empty. Nothing, if
// there is no such database.
[[nodiscard]] Answer<std::vector<About>> stores_of(Client& client, std::string_view name, bool and_below);
// With all that it holds. Nothing happens if its beat is another one by now.
[[nodiscard]] grpc::Status remove_store(Client& client, const About& about);

class Space {
 public:
  // Makes the database, and the store in it, where they are missing.
  [[nodiscard]] static Result<std::unique_ptr<Space>> open(std::unique_ptr<Client> client, const StoreOptions& options);
  ~Space();

  [[nodiscard]] Client& client() { return *client_; }
  [[nodiscard]] const std::string& name() const { return about_.name; }
  [[nodiscard]] VersionClock& clock() { return clock_; }
  [[nodiscard]] bool is_kept() const { return kept_; }

  // Before the answers of a call are believed: an error if the store behind the connection is another than it was, or
  // one that lost something. Costs nothing while the connection holds.
  [[nodiscard]] Status still_there();
  [[nodiscard]] Status lost(std::string what) { return health_.lost(std::move(what)); }

 private:
  Space(std::unique_ptr<Client> client, const StoreOptions& options);
  [[nodiscard]] Status set_up();
  [[nodiscard]] Status make_or_find();
  [[nodiscard]] Status verify();
  void beat();
  void collect();

  std::unique_ptr<Client> client_;
  bool kept_;
  About about_;
  VersionClock clock_;
  std::atomic<std::int64_t> epoch_{0};
  ServerHealth health_;
  bool is_set_up_ = false;
  Heartbeat heartbeat_;
};

}  // namespace farheap::engines::spanner
