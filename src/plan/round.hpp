// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The round that a program repeats, found in the order of its uses of pages: the time after which most pages are used
// again, again and again.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace farheap::plan {

struct TimedUse {
  std::uint32_t time = 0;
  std::uint32_t page = 0;  // any number that tells it from the others
};

struct Round {
  std::uint32_t begin = 0, length = 0;  // one round of those that are alike; no length: there is none
  std::uint32_t end = 0;                // of the last one of them
};

// `uses`: by time, below `end`. A page that is used again within `near` of when it should be is used as expected.
[[nodiscard]] Round find_round(std::span<const TimedUse> uses, std::uint32_t end, std::uint32_t near);

// Which of the uses came one `length` after another one of the same page, within `near`.
[[nodiscard]] std::vector<bool> repeated(std::span<const TimedUse> uses, std::uint32_t length, std::uint32_t near);

}  // namespace farheap::plan
