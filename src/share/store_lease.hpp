// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One lease in one block of a store, held by compare-and-swap: the record {owner, token, beat} of DESIGN.md, section
// 4.13, and STORES.md. Any engine with Capability::kVersions will do.
//
// Its owner renews it four times in a term. Who finds an owner that has ended (on the same machine the kernel tells)
// may take it at once; of an owner elsewhere it watches the record, and may take it when a whole term has passed by its
// own clock without a change. So an owner is sure of it for a term from when it began to renew it last, by its own
// clock, and no longer.
//
// Thread-safety: the owner locks, but for is_sure().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <farheap/store.hpp>

#include "share/lease_record.hpp"

namespace farheap::share {

// For tests; while no lease is held.
void set_lease_term(std::chrono::milliseconds term);
[[nodiscard]] std::chrono::milliseconds lease_term();

class StoreLease {
 public:
  StoreLease(Store& store, std::uint64_t block) : store_(store), block_(block) {}

  // Whether a lease stands there, which record() is then. kCorrupt if it is something else.
  [[nodiscard]] Result<bool> look();
  // Whether somebody has it who is there. Waits for a term where that cannot be told otherwise.
  [[nodiscard]] Result<bool> is_held();

  // Instead of what look() or is_held() has seen last. False: somebody was faster.
  [[nodiscard]] Result<bool> take(LeaseUse use, std::uint64_t commit = 0);
  // Requires: it is held. kConflict: it is not any more.
  [[nodiscard]] Status renew() { return set(record_); }
  // record() with changes; its beat and its process are seen to.
  [[nodiscard]] Status set(LeaseRecord next);
  // The block stays, for nothing erases by compare-and-swap. Errors change nothing: then the lease ends by itself.
  // `fence`: the one that stays.
  void release(std::uint64_t fence);
  // It is not given up: it is another process's, or gone with its block.
  void forget() { taken_ = false; }

  // That it is held, and will be for another half of a term.
  [[nodiscard]] bool is_sure() const;
  // Until when it is, at the least, if it is held: an eighth of a term before anybody else may have it.
  [[nodiscard]] std::int64_t sure_until_ns() const;
  [[nodiscard]] bool is_taken() const { return taken_; }
  // Its own, or seen last; kNone if there was none.
  [[nodiscard]] const LeaseRecord& record() const { return record_; }

 private:
  [[nodiscard]] Result<bool> write(const LeaseRecord& record);

  Store& store_;
  std::uint64_t block_;
  Version seen_ = 0;
  LeaseRecord record_;
  std::atomic<bool> taken_{false};
  std::atomic<std::int64_t> renewed_ns_{0};  // CLOCK_BOOTTIME
};

}  // namespace farheap::share
