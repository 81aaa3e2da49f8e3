// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/pulse.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>

namespace farheap::base {

namespace {

constexpr std::int64_t kBeatNs = 200'000;  // as long as Linux's haltpoll would poll before it lets a processor sleep
constexpr std::uint32_t kFaultsInARow = 8;
constexpr int kPauses = 64;  // between two looks at the clock

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
  if (now - before > kBeatNs) return in_a_row_.store(0, std::memory_order_relaxed);
  if (in_a_row_.fetch_add(1, std::memory_order_relaxed) < kFaultsInARow) return;
  if (sleeping_.load(std::memory_order_relaxed) == 0) return;
  if (sleeping_.exchange(0) != 0) futex(sleeping_, FUTEX_WAKE, INT_MAX);
}

void Pulse::keep_awake() {
  while (!stopped_.load()) {
    if (now_ns() - last_ns_.load(std::memory_order_relaxed) <= kBeatNs) {
      for (int i = 0; i < kPauses; ++i) __builtin_ia32_pause();
      continue;
    }
    sleeping_.store(1);
    while (!stopped_.load() && sleeping_.load() != 0) futex(sleeping_, FUTEX_WAIT, 1);
  }
}

void Pulse::stop() {
  stopped_.store(true);
  sleeping_.store(0);
  futex(sleeping_, FUTEX_WAKE, INT_MAX);
}

}  // namespace farheap::base
