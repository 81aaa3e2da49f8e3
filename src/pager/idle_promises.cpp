// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/idle_promises.hpp"

#include <algorithm>

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

void IdlePromises::look(const base::RunPage& run_page, const base::RunSlot& own) {
  std::uint64_t sum = 0, most = 0;
  for (std::size_t i = 0; i < base::RunPage::kSlots; ++i) {
    const base::RunSlot& slot = run_page.slots[i];
    const std::int32_t pid = slot.pid();
    Seen& seen = seen_[i];
    // Who is in another pid namespace cannot be seen to grow.
    if (pid <= 0 || &slot == &own || slot.watched.load() != 0 || !run_page.is_in_own_namespace(slot)) {
      if (seen.pid != 0) seen = {};
      continue;
    }
    const std::uint64_t promised = std::max(slot.bytes.load(), slot.promised_bytes.load());
    const std::uint64_t held = os::held_bytes(run_page, slot);
    const bool is_quiet = seen.pid == pid && held <= seen.held_bytes;
    const auto looks = static_cast<std::uint8_t>(is_quiet ? std::min(seen.quiet_looks + 1, int{kQuietLooks}) : 0);
    seen = {.pid = pid, .quiet_looks = looks, .held_bytes = held};
    if (looks < kQuietLooks || held == 0 || promised <= held) continue;
    sum += promised - held;
    most = std::max(most, promised - held);
  }
  unused_ = sum - most;
}

}  // namespace farheap::pager
