// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/pulse.hpp"

#include <climits>

#include "base/futex.hpp"

namespace farheap::base {

namespace {

constexpr std::uint32_t kFaultsInARow = 8;

}  // namespace

void Pulse::beat(std::int64_t now) {
  const std::int64_t before = last_ns_.exchange(now, std::memory_order_relaxed);
  // Two handlers may come here at once; the worst is a beat too many or too few.
  if (now - before > kBeat.count()) return in_a_row_.store(0, std::memory_order_relaxed);
  if (in_a_row_.fetch_add(1, std::memory_order_relaxed) < kFaultsInARow) return;
  if (sleeping_.load(std::memory_order_relaxed) == 0) return;
  if (sleeping_.exchange(0) != 0) futex_wake(sleeping_, INT_MAX, Reach::kShared);
}

bool Pulse::wait_for_beats() {
  while (!stopped_.load() && !beats()) {
    sleeping_.store(1);
    while (!stopped_.load() && sleeping_.load() != 0) futex_wait(sleeping_, 1, Reach::kShared);
  }
  return !stopped_.load();
}

bool Pulse::beats(std::chrono::nanoseconds rest) const {
  return !stopped_.load() &&
         Clock::now().time_since_epoch().count() - last_ns_.load(std::memory_order_relaxed) <= rest.count();
}

void Pulse::stop() {
  stopped_.store(true);
  sleeping_.store(0);
  futex_wake(sleeping_, INT_MAX, Reach::kShared);
}

}  // namespace farheap::base
