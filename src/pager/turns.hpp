// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Processes that all thrash in equal shares of the budget take turns: one has most of the memory for some seconds.
// Where no two of their working sets fit, each in its turn works at full speed, and in between hardly at all; in equal
// shares none ever does.
//
// Nobody is in charge: whoever thrashes and sees that a turn is over gives the next one, to the next slot.
//
// Thread-safety: any thread, of any process of the run.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.hpp"
#include "base/run_page.hpp"

namespace farheap::pager {

enum class Turn : std::uint8_t { kNone, kOwn, kAnothers };

// For the process of this slot, which thrashes, beside `others` that do, or has the turn.
[[nodiscard]] Turn take_turns(base::RunPage& run_page, const base::RunSlot& own, std::uint64_t others,
                              base::Clock::time_point now);

// How long: twice what it takes to bring in all of the budget by single pages, and no longer than people wait.
[[nodiscard]] std::chrono::milliseconds turn_length(std::uint64_t budget_bytes);

}  // namespace farheap::pager
