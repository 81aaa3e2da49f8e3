// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: a thread has passed the gate once if it has entered once or more; how often, it counts for itself, because
// the gate is not recursive.
#include "api/commit_holds.hpp"

#include <algorithm>
#include <vector>

namespace farheap::api {

namespace {

struct Hold {
  const CommitHolds* of;
  unsigned times;
};
thread_local std::vector<Hold> holds;  // few: one for each heap this thread is inside of now

auto find(const CommitHolds* of) { return std::ranges::find(holds, of, &Hold::of); }

}  // namespace

void CommitHolds::enter() {
  if (const auto hold = find(this); hold != holds.end()) {
    ++hold->times;
    return;
  }
  holds.push_back({this, 1});
  gate_.enter();
}

bool CommitHolds::has_this_thread() const noexcept { return find(this) != holds.end(); }

void CommitHolds::leave() noexcept {
  const auto hold = find(this);
  if (--hold->times > 0) return;
  *hold = holds.back();
  holds.pop_back();
  gate_.leave();
}

}  // namespace farheap::api
