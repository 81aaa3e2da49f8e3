// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is said to the pager about pages that will be used, by programs (farheap.h, loop_hint.h), allocators and
// segments. It comes in by one door, Pager::hint(), and is advice: whatever is said, the contents stay right.
//
// Pager::fetch() is no hint: it serves the fault itself, in the thread that needs the page, with a buffer of that
// thread's and only where its stack lies elsewhere.
#pragma once

#include <cstdint>

#include "pager/view.hpp"

namespace farheap::pager {

enum class HintKind : std::uint8_t {
  kNone,
  kWillNeed,
  kDoneWith,  // what is on its way leaves when it has come to rest; nobody waits for it
  kStream,
  kKeep,    // until other words of the same pages, or they are given back
  kExpect,  // they will be written soon, and their neighbours: all may come into view now
  kLoopForward,
  kLoopBackward,  // from the last page to the first
  kNormal,        // what was said of them to stay (stream, keep, done with) holds no longer
};

struct Hint {
  HintKind kind = HintKind::kNone;
  PageNumber first = 0;
  std::uint64_t count = 0;  // what lies beyond the capacity is left out
};

}  // namespace farheap::pager
