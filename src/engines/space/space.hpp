// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A store's part of a server, whatever the engine: how it is found or made, that nothing of others is taken for it,
// that what answers later is still what was opened, and how a scratch store lives and goes. An engine says how its
// server is asked for each of these; what it adds for its blocks is its own (bigtable/space.hpp and so on).
//
// Thread-safety: any thread.
#pragma once

#include <atomic>
#include <farheap/store.hpp>
#include <memory>
#include <string>

#include "engines/space/health.hpp"
#include "engines/space/registry.hpp"

namespace farheap::engines {

class ServerSpace {
 public:
  virtual ~ServerSpace() = default;
  ServerSpace(const ServerSpace&) = delete;
  ServerSpace& operator=(const ServerSpace&) = delete;

  [[nodiscard]] ServerClient& server() { return server_; }
  [[nodiscard]] bool is_kept() const { return kept_; }
  [[nodiscard]] std::size_t block_bytes() const { return block_bytes_; }
  [[nodiscard]] const StoreKey& key() const { return key_; }

  // Before the answers of a call are believed: an error if the store behind the connection is another than it was, or
  // one that lost something. Costs nothing while the connection holds.
  [[nodiscard]] Status still_there();
  // That error, from now on in every call.
  Status lost(std::string what) { return health_.lost(std::move(what)); }
  [[nodiscard]] bool is_lost() const { return health_.is_lost(); }
  // A request was answered by this because everything is gone.
  [[nodiscard]] virtual bool says_all_is_lost(const grpc::Status& status) const {
    return status.error_code() == grpc::StatusCode::NOT_FOUND;
  }

 protected:
  // Both outlive this.
  ServerSpace(ServerClient& server, Registry& registry, const StoreOptions& options);
  // Makes the store where it is missing. Called once, before anything else.
  [[nodiscard]] Status enter();
  // For the destructors of engines, first of all; true if there is something to be left.
  [[nodiscard]] bool leave();

  // ---- what an engine says, in the order in which it is asked

  // What a store needs before it can be there: a table, a lease, a first sign of life.
  [[nodiscard]] virtual Status prepare() { return {}; }
  // The description as it is now.
  [[nodiscard]] virtual Answer<std::optional<Found>> find() { return registry_.find(key_); }
  // Only where there is none.
  [[nodiscard]] virtual grpc::Status make(const About& about) = 0;
  // The store is one of ours. Its new epoch.
  [[nodiscard]] virtual Answer<std::uint64_t> begin() { return 0; }
  // False where leases end what a killed program left.
  [[nodiscard]] virtual bool has_beats() const { return true; }
  // A sign of life of a scratch store.
  virtual void beat() {}

  // Whether a description found later is still that of this store; if not, it is lost().
  Status believe(const std::optional<Found>& found);
  [[nodiscard]] const About& about() const { return about_; }

 private:
  [[nodiscard]] Status refuse_foreign();
  [[nodiscard]] Status verify();
  void collect();

  ServerClient& server_;
  Registry& registry_;
  bool kept_;
  std::size_t block_bytes_;
  StoreKey key_;
  About about_;
  std::atomic<std::uint64_t> epoch_{0};
  ServerHealth health_;
  bool has_entered_ = false;
  Heartbeat heartbeat_;
};

// What is said of a scratch store that others took for one of a killed program.
[[nodiscard]] std::string no_sign_of_life();

}  // namespace farheap::engines
