// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/pulse.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>

namespace farheap::base {

namespace {

constexpr std::uint32_t kFaultsInARow = 8;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Not std::atomic::wait(), whose futex is private to a process.
long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  return syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

}  // namespace

void Pulse::beat(std::int64_t now) {
  const std::int64_t before = last_ns_.exchange(now, std::memory_order_relaxed);
  // Two handlers may come here at once; the worst is a beat too many or too few.
  if (now - before > kBeat.count()) return in_a_row_.store(0, std::memory_order_relaxed);
  if (in_a_row_.fetch_add(1, std::memory_order_relaxed) < kFaultsInARow) return;
  if (sleeping_.load(std::memory_order_relaxed) == 0) return;
  if (sleeping_.exchange(0) != 0) futex(sleeping_, FUTEX_WAKE, INT_MAX);
}

bool Pulse::wait_for_beats() {
  while (!stopped_.load() && !beats()) {
    sleeping_.store(1);
    while (!stopped_.load() && sleeping_.load() != 0) futex(sleeping_, FUTEX_WAIT, 1);
  }
  return !stopped_.load();
}

bool Pulse::beats(std::chrono::nanoseconds rest) const {
  return !stopped_.load() && now_ns() - last_ns_.load(std::memory_order_relaxed) <= rest.count();
}

void Pulse::stop() {
  stopped_.store(true);
  sleeping_.store(0);
  futex(sleeping_, FUTEX_WAKE, INT_MAX);
}

}  // namespace farheap::base
