// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pages that others may change, too. The pager reads anew what they have changed, and claims a page before the program
// writes to it. A page that comes in is guarded until it has been claimed; so are the zeros of a fresh one.
//
// A page is taken away in three steps. The backing grants no more claims for it. A commit takes what was written, if
// that is to last. The backing's owner calls invalidate(). The second step, or the third if there is no second, makes
// void each claim that was granted before the first and not used yet: its write would be in no commit.
#include <algorithm>
#include <cassert>
#include <optional>

#include "pager/pager.hpp"

namespace farheap::pager {

void Pager::invalidate(PageNumber first, std::uint64_t count) {
  assert(has_owners_);
  const PageNumber end = first + count;
  while (first < end) {
    const PageNumber stop = std::min<PageNumber>((first / kExtentPages + 1) * kExtentPages, end);
    invalidate_in_extent({first, static_cast<std::uint32_t>(stop - first)});
    first = stop;
  }
  freed_.notify_all();
}

// Until it is known what the backing has, the pages count as on their way in: who touches one waits.
void Pager::invalidate_in_extent(PageRun run) {
  const Still still(door_, leaving_view_);
  Lock lock(mutex_);
  moving_.wait_for_thaw(mutex_);
  ++revocations_;
  earlier_.learn(run.first);
  const bool is_known = table_.find(run.first) != nullptr;  // otherwise the first touch asks
  moving_.begin();
  if (is_known) discard_in_extent(run.first, run.first + run.count, PageState::kFilling);
  lock.unlock();
  backing_.invalidate(run);
  Backing::Stored stored;
  if (is_known) {
    const Status status = ask_stored_patiently(run.first / kExtentPages * kExtentPages, stored);
    if (!status) options_.lost(status.error());
  }
  lock.lock();
  for (PageNumber page = run.first; is_known && page < run.first + run.count; ++page) {
    table_.set_state(page, stored.test(page % kExtentPages) ? PageState::kStored : PageState::kFresh);
  }
  moving_.end();
  view_.wake(run);
}

void Pager::claim_and_let_write(PageNumber page) {
  for (std::optional<std::uint64_t> claimed_at;;) {
    {
      door_.lock(mutex_);
      Lock lock(mutex_, std::adopt_lock);
      moving_.wait_for_thaw(mutex_);
      const bool needs_claim = table_.state(page) == PageState::kPresent && !cut_.are_writes_forbidden();
      if (!needs_claim || claimed_at == revocations_) return let_write(page);
      claimed_at = revocations_;
    }
    if (Status status = claim_patiently({page, 1}); !status) return options_.lost(status.error());
  }
}

}  // namespace farheap::pager
