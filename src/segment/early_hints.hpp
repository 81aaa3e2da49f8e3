// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hints that a program gives before pages leave its memory, and that hold from then on. Programs say what they keep
// when they have just allocated it.
//
// Thread-safety: none of its own.
#pragma once

#include <vector>

#include "pager/hint.hpp"
#include "pager/page_ranges.hpp"

namespace farheap::segment {

class EarlyHints {
 public:
  // A hint of this kind still means something later.
  [[nodiscard]] static bool lasts(pager::HintKind kind) {
    return kind == pager::HintKind::kKeep || kind == pager::HintKind::kStream;
  }
  // Of pages [first, end), in place of what was said of them before.
  void say(pager::HintKind kind, pager::PageNumber first, pager::PageNumber end) {
    forget(first, end);
    if (kind == pager::HintKind::kKeep) kept_.add(first, end);
    if (kind == pager::HintKind::kStream) streamed_.add(first, end);
  }
  void forget(pager::PageNumber first, pager::PageNumber end) {
    kept_.remove(first, end);
    streamed_.remove(first, end);
  }
  // All that was said, which is forgotten here.
  [[nodiscard]] std::vector<pager::Hint> take() {
    std::vector<pager::Hint> all;
    for (const auto& [first, end] : kept_.by_first()) all.push_back({pager::HintKind::kKeep, first, end - first});
    for (const auto& [first, end] : streamed_.by_first()) all.push_back({pager::HintKind::kStream, first, end - first});
    kept_ = {}, streamed_ = {};
    return all;
  }

 private:
  pager::PageRanges kept_, streamed_;
};

}  // namespace farheap::segment
