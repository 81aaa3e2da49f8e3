// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/turns.hpp"

#include <algorithm>

#include "base/units.hpp"

namespace farheap::pager {

namespace {

using base::RunPage;
using base::RunSlot;
using base::Unrest;

constexpr std::chrono::milliseconds kLeast{1000}, kMost{10'000};
constexpr std::chrono::microseconds kMiss{100};
constexpr unsigned kTimeBits = 48;

std::uint64_t milliseconds(base::Clock::time_point now) {
  const auto since_boot = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch());
  return static_cast<std::uint64_t>(since_boot.count()) & ((std::uint64_t{1} << kTimeBits) - 1);
}

// The first that thrashes, from slot `from` on and round. `own` does.
std::size_t next_thrashing(RunPage& run_page, const RunSlot& own, std::size_t from) {
  for (std::size_t i = 0; i < RunPage::kSlots; ++i) {
    const std::size_t at = (from + i) % RunPage::kSlots;
    const RunSlot& slot = run_page.slots[at];
    if (&slot == &own) return at;
    if (slot.pid() > 0 && slot.unrest.load() == Unrest::kThrashes && !run_page.is_gone(slot)) return at;
  }
  return run_page.number_of(own);
}

}  // namespace

std::chrono::milliseconds turn_length(std::uint64_t budget_bytes) {
  const auto filled = std::chrono::duration_cast<std::chrono::milliseconds>(kMiss * (budget_bytes / base::kPageBytes));
  return std::clamp(2 * filled, kLeast, kMost);
}

Turn take_turns(RunPage& run_page, const RunSlot& own, std::uint64_t others, base::Clock::time_point now) {
  const std::size_t own_number = run_page.number_of(own);
  std::uint64_t turn = run_page.turn.load();
  std::size_t holder = static_cast<std::size_t>(turn >> kTimeBits) - 1;
  const bool thrashes = own.unrest.load() == Unrest::kThrashes;
  if (turn != 0 && holder < RunPage::kSlots) {
    const RunSlot& slot = run_page.slots[holder];
    const std::uint64_t ran = milliseconds(now) - (turn & ((std::uint64_t{1} << kTimeBits) - 1));
    const auto length = static_cast<std::uint64_t>(turn_length(run_page.budget_bytes.load()).count());
    const bool goes_on = ran < length && slot.watched.load() != 0 && slot.unrest.load() != Unrest::kRests &&
                         (holder == own_number || !run_page.is_gone(slot));
    if (goes_on) return holder == own_number ? Turn::kOwn : thrashes ? Turn::kAnothers : Turn::kNone;
  } else {
    holder = own_number;
  }
  if (!thrashes || others == 0) return Turn::kNone;
  const std::size_t next = next_thrashing(run_page, own, holder + 1);
  const std::uint64_t word = (std::uint64_t{next} + 1) << kTimeBits | milliseconds(now);
  if (!run_page.turn.compare_exchange_strong(turn, word)) return Turn::kNone;  // another was faster
  return next == own_number ? Turn::kOwn : Turn::kAnothers;
}

}  // namespace farheap::pager
