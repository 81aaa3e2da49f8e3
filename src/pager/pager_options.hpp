// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a pager is told when it is made.
//
// Thread-safety: plain data.
#pragma once

#include <chrono>
#include <cstdint>
#include <farheap/result.hpp>
#include <functional>
#include <memory>

#include "pager/core_index.hpp"
#include "pager/page_order.hpp"
#include "pager/policy.hpp"
#include "pager/view.hpp"

namespace farheap::pager {

struct PagerOptions {
  std::uint64_t capacity_pages = 0;
  PolicyKind policy = PolicyKind::kPeriod;
  std::uint32_t block_min_pages = 1;
  std::uint32_t block_max_pages = 512;          // of blocks fetched or written in one piece
  std::uint64_t read_ahead_pages = 1024;        // how far ahead of a stream; 0: never
  std::uint32_t readers = 1;                    // threads that call read_ahead_once()
  std::uint32_t evictors = 1;                   // ... evict_once(), each with a number of its own
  std::uint32_t probation_percent = 5;          // of the memory there is, at the most
  bool wait_when_full = true;                   // a full store: wait for space, or give up
  std::chrono::milliseconds room_patience{20};  // read-ahead waits so long for who makes room
  CorePage* core_pages = nullptr;               // where the states of pages are noted for cores
  // From this page on HintKind::kExpect brings huge pages, while memory is plentiful. The default: nowhere.
  PageNumber huge_from = UINT64_MAX;
  std::uint64_t pages_before_huge = 2048;  // in memory; who has fewer is not known to grow
  // What differs from the store is known (Changes), so that it can be committed.
  bool track_changes = false;
  bool keep_changes = false;  // what differs is this process's own, and never written: it stays in memory
  std::shared_ptr<const PageOrder> expected_order;  // in which the program will use its pages; none: nobody knows
  bool says_soon = false;                           // to the backing: what may soon be wanted again (Backing::Write)
  // Called when data cannot be kept or read: never returns in a program. In tests it may throw.
  std::function<void(const Error&)> lost;
};

}  // namespace farheap::pager
