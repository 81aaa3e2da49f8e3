// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The heaps that are open in this process, so that what is said of an address finds the one it lies in.
//
// Thread-safety: any thread; hint() in signal handlers, too.
#pragma once

#include <span>
#include <vector>

#include "base/mutex.hpp"
#include "os/fork_mark.hpp"
#include "segment/kept_segment.hpp"

namespace farheap::api {

class OpenHeaps {
 public:
  // Never destroyed: hints may be said while the program ends.
  static OpenHeaps& all();
  OpenHeaps(const OpenHeaps&) = delete;
  OpenHeaps& operator=(const OpenHeaps&) = delete;

  void add(segment::KeptSegment& heap);
  // Nobody is at work on a hint to it when this returns. Does nothing if it is not there.
  void remove(segment::KeptSegment& heap);
  // False if `at` is in none.
  [[nodiscard]] bool hint(pager::HintKind kind, const void* at, std::size_t bytes);
  // The same of the first step. Without steps: of all of them; false if there is none.
  [[nodiscard]] bool expect_order(std::span<const farheap_step> steps, std::size_t round);
  // In a forked child, which has none of its parent's heaps. Does nothing a second time.
  void forget_parents();

 private:
  OpenHeaps() = default;
  ~OpenHeaps() = default;

  os::ForkMark mark_;
  // Held shared for the length of a hint, and by nobody whom a signal may interrupt.
  base::SharedMutex mutex_;
  std::vector<segment::KeptSegment*> heaps_ FARHEAP_GUARDED_BY(mutex_);
};

}  // namespace farheap::api
