// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Between the pager and the versions of a kept segment. While a commit is under way (from the cut until it is done)
// nothing but its own pages goes to the newest version: what is forgotten meanwhile is forgotten when it is done, and
// the pager writes nothing else out (Pager::begin_commit).
//
// Thread-safety: any thread.
#pragma once

#include <unordered_set>
#include <vector>

#include "base/mutex.hpp"
#include "pager/view.hpp"
#include "segment/versions.hpp"

namespace farheap::segment {

class KeptBacking final : public pager::Backing {
 public:
  // The newest state, or a snapshot, of which pages are only read. Both outlive the backing.
  KeptBacking(Versions& versions, const Snapshot* snapshot) : versions_(versions), snapshot_(snapshot) {}

  Status read(std::span<const Read> runs) override {
    return snapshot_ != nullptr ? versions_.read(*snapshot_, runs) : versions_.read(runs);
  }
  Result<Stored> stored_from(pager::PageNumber first) override { return versions_.stored_from(snapshot_, first); }
  Status write(std::span<const Write> runs) override;
  void forget(pager::PageRun run) override;

  void hold();
  // Pages of the commit.
  [[nodiscard]] Status take(std::span<const pager::PageRun> runs, const std::byte* bytes);
  void go_on(bool done);
  // Of these pages those stay in the list that may have been written since the last commit that was done.
  void keep_written(std::vector<pager::PageNumber>& pages);

 private:
  void forget_now(pager::PageRun run) FARHEAP_REQUIRES(mutex_);

  Versions& versions_;
  const Snapshot* snapshot_;
  base::Mutex mutex_;
  bool holding_ FARHEAP_GUARDED_BY(mutex_) = false;
  std::vector<pager::PageRun> forgotten_ FARHEAP_GUARDED_BY(mutex_);
  std::unordered_set<std::uint64_t> written_ FARHEAP_GUARDED_BY(mutex_);  // extents
};

}  // namespace farheap::segment
