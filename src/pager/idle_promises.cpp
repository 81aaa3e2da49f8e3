// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/idle_promises.hpp"

#include <algorithm>

#include "os/process_memory.hpp"
#include "os/run_memory.hpp"

namespace farheap::pager {

std::uint64_t IdlePromises::unused_bytes(const base::RunPage& run_page, const base::RunSlot& own,
                                         std::uint64_t promised, base::Clock::time_point now) {
  if (now >= next_look_) {
    look(run_page, own);
    const auto after = base::Clock::now();
    next_look_ = after + std::max<base::Clock::duration>(kLookEvery, 20 * (after - now));
    promised_then_ = promised;
  }
  const std::uint64_t ended = promised_then_ - std::min(promised_then_, promised);
  return unused_ - std::min(unused_, ended);
}

void IdlePromises::forget() {
  seen_.clear();
  unused_ = 0;
  next_look_ = {};
}

void IdlePromises::look(const base::RunPage& run_page, const base::RunSlot& own) {
  std::uint64_t sum = 0, most = 0;
  for (std::size_t i = 0; i < base::RunPage::kSlots; ++i) {
    const base::RunSlot& slot = run_page.slots[i];
    if (slot.pid() <= 0 && i >= seen_.size()) continue;
    if (i >= seen_.size()) seen_.resize(i + 1);
    const std::uint64_t unused = &slot == &own ? 0 : look_at(run_page, slot, seen_[i]);
    sum += unused;
    most = std::max(most, unused);
  }
  unused_ = sum - most;
}

std::uint64_t IdlePromises::look_at(const base::RunPage& run_page, const base::RunSlot& slot, Seen& seen) {
  const std::int32_t pid = slot.pid();
  // Who pages asks by itself. Who is in another pid namespace cannot be seen to grow.
  if (pid <= 0 || slot.watched.load() != 0 || !run_page.is_in_own_namespace(slot)) {
    seen = {};
    return 0;
  }
  const std::uint64_t promised = std::max(slot.bytes.load(), slot.promised_bytes.load());
  const std::uint64_t grown = os::held_bytes(run_page, slot);
  const bool is_quiet = seen.pid == pid && grown != 0 && grown <= seen.grown_bytes;
  if (!is_quiet) {
    seen = {.pid = pid, .grown_bytes = grown};
    return 0;
  }
  seen.grown_bytes = grown;
  if (seen.quiet_looks < kQuietLooks) ++seen.quiet_looks;
  if (seen.quiet_looks < kQuietLooks) return 0;
  // What it shares with its parent is its own when that has gone.
  if (seen.share_looks == 0) {
    const std::uint64_t share = slot.inherited_bytes.load() == 0 ? grown : os::ProcessMemory::anonymous_share_of(pid);
    seen.share_bytes = share != 0 ? share : promised;
  }
  seen.share_looks = static_cast<std::uint8_t>((seen.share_looks + 1) % kShareEvery);
  const std::uint64_t held = std::max(grown, seen.share_bytes);
  return promised - std::min(promised, held);
}

}  // namespace farheap::pager
