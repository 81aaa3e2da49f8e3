// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/futex.hpp"

#include <linux/futex.h>

#include "base/system_call.hpp"

namespace farheap::base {
namespace {

void wait(const std::atomic<std::uint32_t>& word, std::uint32_t value, const timespec* until, Reach reach) {
  const int operation = reach == Reach::kShared ? FUTEX_WAIT_BITSET : FUTEX_WAIT_BITSET_PRIVATE;
  (void)kernel_answer(SYS_futex, word_of(&word), operation, value, word_of(until), 0, FUTEX_BITSET_MATCH_ANY);
}

}  // namespace

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t value, Reach reach) noexcept {
  wait(word, value, nullptr, reach);
}

void futex_wait_until(const std::atomic<std::uint32_t>& word, std::uint32_t value, Clock::time_point moment,
                      Reach reach) noexcept {
  if (moment.time_since_epoch().count() <= 0) return;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(moment);
  const timespec until{seconds.time_since_epoch().count(), (moment - seconds).count()};
  wait(word, value, &until, reach);
}

void futex_wake(const std::atomic<std::uint32_t>& word, int most, Reach reach) noexcept {
  const int operation = reach == Reach::kShared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE;
  (void)kernel_answer(SYS_futex, word_of(&word), operation, most, 0, 0, 0);
}

}  // namespace farheap::base
