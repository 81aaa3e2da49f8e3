// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The replay drives the pager with a known order of uses, and counts what it reads and writes. There is no program and
// no store. The replay does one after the other what the pager's threads do at the same time. A clock is there if its
// speeds are told: then reading ahead takes time in which the program goes on, until it needs what is not there yet.
// One device serves all, one after the other. The pager's own work takes no time.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

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
  double seconds = 0;             // by the clock
};

struct ReplayClock {   // seconds; page 0: there is no clock, and all that is asked for is there at once
  double use = 0;      // of the program's own work, for each use
  double page = 0;     // reading or writing one page of many
  double request = 0;  // before the first page of a request comes, which the program waits for
};

struct Speeds {
  double own_seconds = 0;        // that the recorded run took without waiting for pages
  double seconds_a_page = 0;     // of the store, in large pieces; 0: not known, and no seconds are told
  double seconds_a_request = 0;  // before a page comes that is read by itself
};
// The clock of a run of so many uses.
[[nodiscard]] inline ReplayClock clock_of(const Speeds& speeds, double uses) {
  return {speeds.own_seconds / uses, speeds.seconds_a_page, speeds.seconds_a_request};
}

struct ReplayOptions {
  pager::PolicyKind policy = pager::PolicyKind::kPeriod;
  std::uint32_t probation_percent = 5;
  // The first is expected from the beginning on, the next one where it is left, and so on, round and round. nullptr: in
  // that phase none is known.
  std::vector<std::shared_ptr<const pager::PageOrder>> orders = {};
  ReplayClock clock = {};
};

// `pages`: all touches are below. `memory_pages`: may stay in memory.
[[nodiscard]] ReplayCounts replay(std::span<const ReplayedTouch> touches, std::uint64_t pages,
                                  std::uint64_t memory_pages, const ReplayOptions& options = {});

}  // namespace farheap::plan
