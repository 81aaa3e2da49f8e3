// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A process that does not page may come to have more memory without asking: pages of addresses that it was given and
// has not touched, and copies of pages that it shares with its parent. That much is promised to it. An idle server
// process uses none of it, and a tree has many of them. So whoever is short of room may use what is promised to
// processes that have not grown for a while, but for as much as the one that could grow most. When one wakes, the next
// look sees it grow, and from then on all of its promise counts again.
//
// What a forked process shares counts for it in part at least, so that together all that is in memory is counted, also
// when the parent has gone.
//
// Thread-safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "base/run_page.hpp"

namespace farheap::pager {

class IdlePromises {
 public:
  // A look takes some 10 us a process. Between two there are at least this long, and 20 times what one takes.
  static constexpr std::chrono::milliseconds kLookEvery{5};
  // In a row without growth: then a process is idle.
  static constexpr std::uint8_t kQuietLooks = 20;

  // How many bytes of others' promises this process may use just now; looks when it is time for it. `promised` is what
  // is promised to all others now: what of it has ended since the last look is no longer lent.
  // Allocates.
  [[nodiscard]] std::uint64_t unused_bytes(const base::RunPage& run_page, const base::RunSlot& own,
                                           std::uint64_t promised, base::Clock::time_point now);
  // In a forked child: nothing has been seen yet.
  void forget();

 private:
  static constexpr std::uint8_t kShareEvery = 20;  // looks
  struct Seen {
    std::int32_t pid = 0;
    std::uint8_t quiet_looks = 0;
    std::uint8_t share_looks = 0;  // since its share was read
    std::uint64_t grown_bytes = 0;
    std::uint64_t share_bytes = 0;
  };
  void look(const base::RunPage& run_page, const base::RunSlot& own);
  // What of its promise the process in this slot does not use, if it is idle.
  [[nodiscard]] static std::uint64_t look_at(const base::RunPage& run_page, const base::RunSlot& slot, Seen& seen);

  std::vector<Seen> seen_;  // by slot
  std::uint64_t unused_ = 0, promised_then_ = 0;
  base::Clock::time_point next_look_{};
};

}  // namespace farheap::pager
