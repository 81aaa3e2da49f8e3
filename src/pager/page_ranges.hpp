// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pages of which something was said: that they are kept, or streamed. They need not be in memory, nor have been
// touched: it holds whenever they come.
//
// Thread-safety: none of its own; the pager's mutex guards it.
#pragma once

#include <cstddef>
#include <map>

#include "pager/view.hpp"

namespace farheap::pager {

class PageRanges {
 public:
  // So many ranges apart from each other are remembered, about.
  static constexpr std::size_t kMost = 1 << 16;

  // Pages [first, end). Does nothing where it would be one range too many.
  void add(PageNumber first, PageNumber end);
  void remove(PageNumber first, PageNumber end);
  // True if a range has one of the pages [first, end).
  [[nodiscard]] bool overlap(PageNumber first, PageNumber end) const;
  [[nodiscard]] std::size_t size() const { return ends_.size(); }
  // The end of each.
  [[nodiscard]] const std::map<PageNumber, PageNumber>& by_first() const { return ends_; }

 private:
  std::map<PageNumber, PageNumber> ends_;  // by first page; they neither overlap nor touch each other
};

}  // namespace farheap::pager
