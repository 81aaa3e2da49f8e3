// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A store's part of a table: what says that it is there and whose it is (docs/formats.md), and how a scratch store
// goes away, by its program's end or, if that was killed, by the next that comes.
//
// Thread-safety: any thread.
#pragma once

#include <atomic>
#include <memory>

#include "engines/bigtable/client.hpp"
#include "engines/space/health.hpp"
#include "engines/space/version_clock.hpp"

namespace farheap::engines::bigtable {

// What the row "m" of a store says.
struct About {
  std::uint64_t format = 0;
  std::uint64_t block_bytes = 0;
  std::string identity;
};
[[nodiscard]] std::string about_text(const About& about);
[[nodiscard]] std::optional<About> about_in(std::string_view text);

class Space {
 public:
  // Makes the table, and the store in it, where they are missing.
  [[nodiscard]] static Result<std::unique_ptr<Space>> open(std::unique_ptr<Client> client, const StoreOptions& options);
  ~Space();

  [[nodiscard]] Client& client() { return *client_; }
  [[nodiscard]] const Keys& keys() const { return keys_; }
  [[nodiscard]] VersionClock& clock() { return clock_; }
  [[nodiscard]] bool is_kept() const { return kept_; }

  // Before the answers of a call are believed: an error if the store behind the connection is another than it was, or
  // one that lost something. Costs nothing while the connection holds.
  [[nodiscard]] Status still_there();
  // A request said that the table is not there.
  [[nodiscard]] Status lost(std::string what) { return health_.lost(std::move(what)); }

 private:
  Space(std::unique_ptr<Client> client, const StoreOptions& options);
  [[nodiscard]] Status set_up();
  [[nodiscard]] Status make_table_if_missing();
  [[nodiscard]] Status refuse_foreign_rows();
  [[nodiscard]] Status look_at_clock();
  [[nodiscard]] Status check(const About& about) const;
  [[nodiscard]] Status verify();
  [[nodiscard]] Answer<std::optional<Row>> read_about();
  [[nodiscard]] grpc::Status beat();
  void collect();

  std::unique_ptr<Client> client_;
  bool kept_;
  std::size_t block_bytes_;
  Keys place_keys_;  // of the name
  std::string id_;   // scratch
  Keys keys_;        // of this store
  VersionClock clock_;
  std::string identity_;
  std::atomic<std::uint64_t> epoch_{0};
  ServerHealth health_;
  std::uint64_t last_beat_ = 0;  // 0: not registered
  Heartbeat heartbeat_;
};

// The keys of what is below a name: its kept store's, not those of scratch stores.
[[nodiscard]] api::ReadRowsRequest kept_rows(const Keys& name_keys);
// Scratch stores below a name.
struct Scratch {
  std::string id;
  std::string beat;  // as it is in the cell
  bool is_stale = false;
};
[[nodiscard]] Answer<std::vector<Scratch>> scratch_stores(Client& client, const Keys& name_keys,
                                                          const VersionClock& clock);
// Of a program that was killed; nothing happens if it lives after all. A beat of 0 is stale: what was not collected to
// the end is collected again.
[[nodiscard]] grpc::Status collect_scratch(Client& client, const Keys& name_keys, const Scratch& scratch);

}  // namespace farheap::engines::bigtable
