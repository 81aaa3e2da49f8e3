// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The replay drives the pager with a known order of uses, and counts what it reads and writes. There is no program, no
// store and no clock. The replay does one after the other what the pager's threads do at the same time.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "pager/page_order.hpp"
#include "pager/policy.hpp"

namespace farheap::plan {

struct ReplayedTouch {
  std::uint32_t page;
  bool write = false;
  bool drop = false;  // no touch: the contents are not needed any more
};

struct ReplayCounts {
  std::uint64_t pages_read = 0, reads = 0, reads_ahead = 0;  // reads: requests by a fault, and ahead of one
  std::uint64_t pages_written = 0, writes = 0;
  std::uint64_t soft_faults = 0;  // the page was out of view but still in memory
  std::uint64_t as_expected = 0;  // touches, out of view, that the order had foreseen
  friend ReplayCounts operator-(const ReplayCounts& all, const ReplayCounts& some);
};

struct ReplayOptions {
  pager::PolicyKind policy = pager::PolicyKind::kPeriod;
  std::uint32_t probation_percent = 5;
  std::shared_ptr<const pager::PageOrder> order;  // it is expected from the beginning on; nullptr: none is
  std::size_t counted_from = 0;                   // touches before that one are not counted
};

// `pages`: all touches are below. `memory_pages`: may stay in memory.
[[nodiscard]] ReplayCounts replay(std::span<const ReplayedTouch> touches, std::uint64_t pages,
                                  std::uint64_t memory_pages, const ReplayOptions& options = {});

}  // namespace farheap::plan
