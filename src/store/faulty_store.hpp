// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// faulty+: a store that breaks its promises at given rates, from a seed, so that a failure found once is found again.
// Which entries are hit depends on nothing but the seed and how many entries came before.
//
// Thread-safety: any thread; what hits whom is repeatable only if one thread calls.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "store/decorator.hpp"
#include "store/fork_lock.hpp"

namespace farheap::store {

// Rates are per entry, 0 to 1.
struct FaultPlan {
  std::uint64_t seed = 1;
  double error = 0;      // get, put, erase, add, sync: kFailed, nothing was done
  double torn = 0;       // put: answers kOk, only the first part of the bytes has arrived
  double lost = 0;       // put: answers kOk, nothing has arrived
  double short_ = 0;     // get, put of runs: the first blocks are done, then kFailed; "short" in a URI
  double flip = 0;       // get: answers kOk, one bit is wrong
  double unknown = 0;    // put, add: kUnknown, and one half of these are carried out
  double sync_lost = 0;  // sync: fails, and one half of what was put since the last good one is as it was before
  std::uint64_t full_after = 0;  // bytes: beyond that, put answers kNoSpace; 0: never full
};

class FaultyStore final : public Decorator {
 public:
  FaultyStore(std::unique_ptr<Store> inner, const FaultPlan& plan);

  // From now on. The count of entries goes on.
  void set_plan(const FaultPlan& plan);
  // Entries hit so far.
  [[nodiscard]] std::uint64_t faults() const { return faults_.load(); }
  [[nodiscard]] Store& inner() { return *inner_; }

  Status get(std::span<Get> batch) override;
  Status put(std::span<Put> batch) override;
  Status erase(std::uint64_t first, std::uint64_t count) override;
  Result<std::int64_t> add(std::string_view counter, std::int64_t delta) override;
  Status sync() override;

 private:
  class Dice;
  [[nodiscard]] Dice throw_dice();
  [[nodiscard]] FaultPlan plan();
  void get_one(Get& entry, const FaultPlan& plan);
  void put_one(Put& entry, const FaultPlan& plan);
  void put_torn(Put& entry, std::uint64_t chance);
  [[nodiscard]] bool is_full(const Put& entry, const FaultPlan& plan);
  void remember(std::uint64_t block);
  void forget_some(Dice& dice);

  ForkLock plan_lock_;
  FaultPlan plan_ FARHEAP_GUARDED_BY(plan_lock_);
  ForkLock before_lock_;
  // Blocks that were put since the last sync.
  std::map<std::uint64_t, std::optional<std::vector<std::byte>>> before_ FARHEAP_GUARDED_BY(before_lock_);
  std::atomic<std::uint64_t> entries_{0};
  std::atomic<std::uint64_t> faults_{0};
};

}  // namespace farheap::store
