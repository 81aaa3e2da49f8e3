// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// redis:, rediss:, redis+cluster: blocks in Redis. One server is a cluster of one that owns every slot.
//
// Keys: keys.hpp. Requests, redirections, retries: exchange.hpp. What a server lost: beats.hpp. Whose it is: names.hpp.
//
// A put is HSET, of up to 256 KiB in one command, and its stamp (Version) is written with it; done again it is the
// same. A put with `expected` is a script that knows its own stamp, so that done again it answers as it did the first
// time; where somebody has written since, it is kUnknown. An add() leaves its answer beside the counter, to be found
// again. Plain puts of several clients to one block are not protected from one another: one whose answer was lost is
// done again.
//
// Durable are puts only where the server's log is on its disk before it answers (appendonly yes, appendfsync always).
// sync() waits for ?replicas= of them, and fails if they are fewer.
//
// Thread-safety: any thread. A forked child goes on with connections of its own.
#pragma once

#include <farheap/store.hpp>
#include <memory>
#include <string>
#include <vector>

#include "store/redis/caller.hpp"
#include "store/redis/family_lock.hpp"
#include "store/redis/names.hpp"

namespace farheap::store::redis {

class RedisStore final : public Store {
 public:
  // Requires: open() before anything else.
  RedisStore(Place place, const std::string& name, const StoreOptions& options);
  ~RedisStore() override;

  [[nodiscard]] Status open();

  std::string describe() const override { return shared_.place.shown; }
  Limits limits() const override { return limits_; }
  Capabilities capabilities() const override;
  Status get(std::span<Get> batch) override;
  Status put(std::span<Put> batch) override;
  std::unique_ptr<GetsInFlight> gets_in_flight(unsigned most) override;
  Status erase(std::uint64_t first, std::uint64_t count) override;
  Result<std::int64_t> add(std::string_view counter, std::int64_t delta) override;
  Status sync() override;
  Result<StoreUsage> usage() override;
  Result<std::vector<BlockRun>> runs_from(std::uint64_t first) override;
  Result<std::vector<NamedCounter>> counters() override;

 private:
  friend class RedisGetsInFlight;
  [[nodiscard]] Status erase_listed(Caller& caller, std::uint64_t first, std::uint64_t last);
  [[nodiscard]] Status erase_present(Caller& caller, std::uint64_t first, std::uint64_t last);
  void add_erasure(Caller& caller, std::uint64_t group, std::uint64_t first, std::uint64_t last);
  [[nodiscard]] Result<std::vector<std::uint64_t>> groups_present(Caller& caller);
  [[nodiscard]] std::string key_on(unsigned node) const;
  [[nodiscard]] bool is_last_process();

  Shared shared_;
  Lanes lanes_;
  StoreOptions options_;
  Limits limits_;
  bool is_durable_ = false;
  std::string parent_;  // of a scratch store: the name it is registered with
  FamilyLock family_;
  int alive_[2] = {-1, -1};  // of a scratch store: a pipe that all its processes hold open
};

}  // namespace farheap::store::redis
