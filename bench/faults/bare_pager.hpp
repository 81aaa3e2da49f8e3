// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pager without a policy and without a store: threads touch pages at random, handlers fill in the missing ones, and
// evictors drop the oldest, so that a share of the pages stays. What it reaches is what the kernel allows a pager that
// knows nothing and waits for nothing.
//
// Nothing is shared that need not be: every handler has a limit and a ring of its own pages, and every ring one
// evictor. A page is known by its number, which is its first word; who reads another one ends the program.
#pragma once

#include <cstddef>
#include <cstdint>

namespace farheap::bench::faults {

enum class Wait : std::uint8_t {
  kPoll,   // all handlers of a userfaultfd are woken by each fault
  kEpoll,  // one of them is (EPOLLEXCLUSIVE)
  kSpin,   // none sleeps
};

enum class Eviction : std::uint8_t {
  kDrop,  // by one process_madvise() a batch, or page by page where the kernel has it not
  kMove,  // UFFDIO_MOVE page by page, as a pager does that may not lose a write; then one drop for all
};

struct Shape {
  unsigned threads = 1;
  unsigned handlers = 1;
  unsigned userfaultfds = 1;
  unsigned evictors = 1;
  unsigned ranges = 0;  // mappings apart from each other; 0: one for each userfaultfd
  std::size_t bytes = std::size_t{1} << 30;
  unsigned resident_percent = 75;
  std::size_t batch = 256;  // pages that are evicted at once
  std::size_t events = 1;   // faults that a handler takes at once
  unsigned spin_us = 0;     // a handler looks so long for the next fault before it sleeps
  Wait wait = Wait::kPoll;
  Eviction eviction = Eviction::kDrop;
  double seconds = 2;
  std::uint64_t touches = 0;  // of each thread; 0: as many as the seconds allow
  std::uint64_t seed = 1;
};

// Runs it and says what was reached, under the name THREADS_HANDLERS_USERFAULTFDS_EVICTORS.
void run_bare_pager(const Shape& shape);

}  // namespace farheap::bench::faults
