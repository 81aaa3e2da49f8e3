// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exact LRU: what is read by a policy that knows every use and evicts the page that was used least recently.
//
// A trace recorded through a window of W pages does not show the last use of a page, but when it came; between the two
// lie at most W other pages that came, if pages leave the window in the order in which they came. So the reads of the
// full trace in M pages lie between those of the recorded one in M + W and in M - W pages.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "plan/optimum.hpp"

namespace farheap::plan {

// Pages read; a fresh use reads nothing. Requires: memory_pages != 0.
[[nodiscard]] std::uint64_t lru_reads(const Uses& trace, std::uint64_t memory_pages);

}  // namespace farheap::plan
