// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Who writes a kept segment in a store on a server, and who reads which of its commits: one lease for the writer, and
// one for each reader, in blocks of the same store from kFirstLease on.
//
//   block kFirstLease           the writer's, or his who creates or removes the segment (alone)
//   blocks kFirstLease + 1 ..   the readers'
//
// A reader takes its lease first and looks at the writer's then; who wants to be alone takes the writer's first and
// looks at the readers' then. In a store that is linearisable one of the two sees the other.
//
// A lease that was lost is found out before anything is done with what was read, and before anything is written
// (make_sure(), leased_store.hpp): nobody gives away what a reader reads before its lease has changed hands by
// compare-and-swap, so a lease that can be renewed after a read held during the read.
//
// What an owner has sent may arrive after its lease is another's, whatever clocks say: it was stopped in the middle of
// a call, or killed with bytes in its kernel, or a network kept them. So terms and deadlines (store/deadline.hpp) only
// make that rare, and a fence makes it harmless. The writer's record has two numbers, F <= R:
//
//   - its owner writes and erases blocks of pages and books from F on and below R only. R is raised by compare-and-swap
//     before that is written which lies behind it (LeasedStore does both);
//   - who takes the lease from one that did not give it up sets F = R in the same compare-and-swap. The former owner
//     can raise R no more. So all that it, or any before it, has sent to blocks lies below the new F;
//   - what a call sent without being answered is like a former owner's (doubt()): the owner goes on behind R, and makes
//     that R the F of those after it.
//
// So no block that is written has anything late coming to it. Blocks below F that a version refers to stay: they were
// there when F was raised, nobody sends anything to a block that the newest commit refers to, and a writer's last
// commit is the newest: roots are replaced by compare-and-swap only, and who opens behind a fence replaces the root
// that a late commit would replace (Versions::open()). Free blocks below F are erased and never used again: a store
// that keeps blocks by key loses nothing but their numbers by it, of which there are 2^40.
//
// Thread-safety: any thread. A thread of its own renews the leases.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <farheap/store.hpp>
#include <memory>

#include "base/condition.hpp"
#include "base/mutex.hpp"
#include "segment/version_leases.hpp"
#include "share/store_lease.hpp"
#include "store/deadline.hpp"
#include "store/heap_blocks.hpp"

namespace farheap::share {

using store::kFirstLease;
inline constexpr std::uint64_t kMostReaders = 64;

class SegmentLeases final : public segment::VersionLeases {
 public:
  // kConflict, with the holder's name, if somebody else's lease forbids it. kUnavailable if the store has no
  // compare-and-swap. `name`: of the segment, for messages.
  // `beats`: kByHand for simulations, which call beat() themselves.
  enum class Beats { kByThread, kByHand };
  [[nodiscard]] static Result<std::unique_ptr<SegmentLeases>> take(std::unique_ptr<Store> store, LeaseUse use,
                                                                   std::string name, Beats beats = Beats::kByThread);
  [[nodiscard]] static Result<bool> has_writer(Store& store);
  // Gives them up.
  ~SegmentLeases() override;

  // It was alone; from now on it writes, and others may read.
  [[nodiscard]] Status let_readers_in();
  [[nodiscard]] Status take(std::uint64_t commit) override;
  [[nodiscard]] Result<std::uint64_t> oldest() override;
  [[nodiscard]] std::uint64_t fence() const override { return fence_.load(); }
  [[nodiscard]] bool is_anybody_late() const override { return is_anybody_late_; }
  // That what this process has leases for has been so until now. kConflict: it is not.
  [[nodiscard]] Status make_sure();
  // The same, and blocks before `end` are reserved.
  [[nodiscard]] Status make_sure(std::uint64_t end);
  // What was sent below this may still arrive, and nothing was sent from there on.
  [[nodiscard]] std::uint64_t reserved() const { return reserved_.load(); }
  // Something was sent, and nobody knows whether it arrived, or will.
  void doubt();
  // Until when this process has its lease for sure.
  [[nodiscard]] store::Deadline sure_until() const { return store::Deadline::at(until_when().sure_until_ns()); }
  // Renews it. The thread's, four times in a term.
  [[nodiscard]] Status beat();
  // How many blocks of the store are leases.
  [[nodiscard]] Result<std::uint64_t> blocks();
  // In a forked child: they are the parent's.
  void leave_to_parent();
  // The store's blocks are gone, and the leases with them.
  void forget();

 private:
  SegmentLeases(std::unique_ptr<Store> store, std::string name);
  [[nodiscard]] Status take_writers(LeaseUse use);
  [[nodiscard]] Status take_readers();
  [[nodiscard]] Status check_nobody_reads() FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] Status start_beating();
  static void* run(void* leases);
  void keep_beating();

  // For is_sure() and sure_until_ns(), which need no lock.
  [[nodiscard]] const StoreLease& until_when() const { return *mine_.get(); }

  // What is known of a reader's block.
  struct Reader {
    Version version = 0;
    LeaseRecord record;
    std::int64_t since_ns = 0;  // when it was seen first as it is
    [[nodiscard]] bool is_taken() const { return version != 0 && record.use != LeaseUse::kNone; }
  };
  // Reads them anew, and ends the leases of those who are gone.
  [[nodiscard]] Status look_at_readers() FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] Status end_lease_of(std::uint64_t reader) FARHEAP_REQUIRES(mutex_);

  std::unique_ptr<Store> store_;
  const std::string name_;
  base::Mutex mutex_;
  base::Condition changed_;
  std::unique_ptr<StoreLease> mine_ FARHEAP_PT_GUARDED_BY(mutex_);
  std::array<Reader, kMostReaders> readers_ FARHEAP_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> fence_{0};
  std::atomic<std::uint64_t> reserved_{0};
  std::atomic<bool> was_in_doubt_{false};
  bool is_anybody_late_ = false;
  pthread_t thread_{};
  bool beating_ = false;
  bool stopping_ FARHEAP_GUARDED_BY(mutex_) = false;
};

}  // namespace farheap::share
