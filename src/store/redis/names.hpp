// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Namespaces: what is kept under NAME, and the scratch stores below it, NAME~ID.
//
// A scratch store is registered with its parent's name (scratch_entry.hpp). It is in use while it was heard of lately,
// or a connection by its name is there. A connection that is not there says nothing: servers drop idle ones, and so do
// routers.
//
// Thread-safety: one thread at a time for each Caller.
#pragma once

#include <string>
#include <vector>

#include "store/redis/caller.hpp"

namespace farheap::store::redis {

constexpr std::uint64_t kFormat = 1;

struct Meta {
  bool is_there = false;
  std::uint64_t format = 0;
  std::uint64_t block_bytes = 0;
  std::string identity;
  Lifetime lifetime = Lifetime::kKeep;
};

// Refuses servers that would lose data, or are of the other kind. Requires: Exchange::set_hasty() for an opening.
[[nodiscard]] Status reach_servers(Caller& caller);
// Whether every server's log is on its disk before it answers.
[[nodiscard]] bool is_each_write_durable(Caller& caller);

[[nodiscard]] Result<Meta> read_meta(Caller& caller, const std::string& name);
// Makes what is not there, refuses what is not the same, and remembers whose it is in Shared::identity.
[[nodiscard]] Status open_meta(Caller& caller, const std::string& name, const StoreOptions& options);

// The store's own: Shared::scratch.
[[nodiscard]] Status register_scratch(Caller& caller);
// Says that it is in use, and finds out if it was removed. Asks once: the next beat comes.
void renew_scratch(Caller& caller);
// The ids of scratch stores below a name; `in_use` of each.
struct ScratchStore {
  std::string id;
  bool is_in_use;
};
[[nodiscard]] Result<std::vector<ScratchStore>> scratch_below(Caller& caller, const std::string& parent);
[[nodiscard]] Status remove_scratch(Caller& caller, const std::string& parent, const std::string& id);
// Those that nobody uses any more.
[[nodiscard]] Status collect_scratch(Caller& caller, const std::string& parent);
// Keys of a store whose record is gone, because the server was emptied while somebody wrote. False if there are none.
[[nodiscard]] Result<bool> remove_leftovers(Caller& caller, const std::string& name);
// All of a namespace's keys; what is below it stays.
[[nodiscard]] Status remove_namespace(Caller& caller, const std::string& name);

}  // namespace farheap::store::redis
