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
// compare-and-swap, so a lease that can be renewed after a read held during the read. One case is left: a writer that
// is stopped in the middle of a call that writes, for longer than half a term, while a writer on another machine takes
// over, writes what was stopped when it goes on. It can commit nothing, but it may write over a page.
//
// Thread-safety: any thread. A thread of its own renews the leases.
#pragma once

#include <pthread.h>

#include <array>
#include <condition_variable>
#include <farheap/store.hpp>
#include <memory>
#include <mutex>

#include "segment/version_leases.hpp"
#include "share/store_lease.hpp"
#include "store/heap_blocks.hpp"

namespace farheap::share {

using store::kFirstLease;
inline constexpr std::uint64_t kMostReaders = 64;

class SegmentLeases final : public segment::VersionLeases {
 public:
  // kConflict, with the holder's name, if somebody else's lease forbids it. kUnavailable if the store has no
  // compare-and-swap. `name`: of the segment, for messages.
  [[nodiscard]] static Result<std::unique_ptr<SegmentLeases>> take(std::unique_ptr<Store> store, LeaseUse use,
                                                                   std::string name);
  [[nodiscard]] static Result<bool> has_writer(Store& store);
  // Gives them up.
  ~SegmentLeases() override;

  // It was alone; from now on it writes, and others may read.
  [[nodiscard]] Status let_readers_in();
  [[nodiscard]] Status take(std::uint64_t commit) override;
  [[nodiscard]] Result<std::uint64_t> oldest() override;
  // That what this process has leases for has been so until now. kConflict: it is not.
  [[nodiscard]] Status make_sure();
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
  [[nodiscard]] Status check_nobody_reads();
  [[nodiscard]] Status start_beating();
  static void* run(void* leases);
  void beat();

  // What is known of a reader's block.
  struct Reader {
    Version version = 0;
    LeaseRecord record;
    std::int64_t since_ns = 0;  // when it was seen first as it is
    [[nodiscard]] bool is_taken() const { return version != 0 && record.use != LeaseUse::kNone; }
  };
  // Reads them anew, and ends the leases of those who are gone.
  [[nodiscard]] Status look_at_readers();
  [[nodiscard]] Status end_lease_of(std::uint64_t reader);

  std::unique_ptr<Store> store_;
  const std::string name_;
  std::mutex mutex_;  // guards all below, and the lease but for is_sure()
  std::condition_variable changed_;
  std::unique_ptr<StoreLease> mine_;
  std::array<Reader, kMostReaders> readers_;
  pthread_t thread_{};
  bool beating_ = false;
  bool stopping_ = false;
};

}  // namespace farheap::share
