// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/pulse.hpp"

#include <climits>

#include "base/futex.hpp"

namespace farheap::base {

namespace {

constexpr std::uint32_t kFaultsInARow = 8;

// What is shared may be any number: it wraps around.
std::int64_t age(std::int64_t of, std::int64_t now) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(now) - static_cast<std::uint64_t>(of));
}

}  // namespace

void Pulse::beat(std::int64_t now) {
  const std::int64_t before = last_ns_.exchange(now, std::memory_order_relaxed);
  // Two handlers may come here at once; the worst is a beat too many or too few.
  if (age(before, now) > kBeat.count()) return in_a_row_.store(0, std::memory_order_relaxed);
  if (in_a_row_.fetch_add(1, std::memory_order_relaxed) < kFaultsInARow) return;
  if (sleeping_.load(std::memory_order_relaxed) == 0) return;
  if (sleeping_.exchange(0) != 0) futex_wake(sleeping_, INT_MAX, Reach::kShared);
}

bool Pulse::wait_for_beats(const std::atomic<bool>& stopped) {
  constexpr std::chrono::seconds kLongest(1);  // somebody may have written to the word what no wake-up follows
  while (!stopped.load() && !beats()) {
    sleeping_.store(1);
    while (!stopped.load() && sleeping_.load() == 1) {
      futex_wait_until(sleeping_, 1, Clock::now() + kLongest, Reach::kShared);
    }
  }
  return !stopped.load();
}

bool Pulse::beats(std::chrono::nanoseconds rest) const {
  return age(last_ns_.load(std::memory_order_relaxed), Clock::now().time_since_epoch().count()) <= rest.count();
}

void Pulse::wake() {
  sleeping_.store(0);
  futex_wake(sleeping_, INT_MAX, Reach::kShared);
}

}  // namespace farheap::base
