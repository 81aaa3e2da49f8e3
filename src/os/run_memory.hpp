// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a process of a run holds of the run's budget, seen from any process.
#pragma once

#include <cstdint>

#include "base/run_page.hpp"

namespace farheap::os {

// Anonymous bytes of the process in this slot of the page, what it shares with relatives counted once as far as that is
// known. 0 if there is none or it has ended. Of a process in another pid namespace: what it said when it last looked.
// Takes no lock, allocates nothing; about 10 us.
[[nodiscard]] std::uint64_t held_bytes(const base::RunPage& page, const base::RunSlot& slot);

// The same of a process of this pid namespace, straight from /proc: what it has, or has added to what it shares.
[[nodiscard]] std::uint64_t grown_bytes(const base::RunSlot& slot);

}  // namespace farheap::os
