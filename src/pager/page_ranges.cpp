// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/page_ranges.hpp"

#include <algorithm>
#include <iterator>

namespace farheap::pager {

void PageRanges::add(PageNumber first, PageNumber end) {
  auto next = ends_.upper_bound(first);
  if (next != ends_.begin() && std::prev(next)->second >= first) --next;
  const bool joins = next != ends_.end() && next->first <= end;
  if (!joins && ends_.size() >= kMost) return;
  for (; next != ends_.end() && next->first <= end; next = ends_.erase(next)) {
    first = std::min(first, next->first);
    end = std::max(end, next->second);
  }
  ends_.emplace_hint(next, first, end);
}

void PageRanges::remove(PageNumber first, PageNumber end) {
  auto next = ends_.upper_bound(first);
  if (next != ends_.begin() && std::prev(next)->second > first) --next;
  while (next != ends_.end() && next->first < end) {
    const auto [from, to] = *next;
    next = ends_.erase(next);
    if (from < first) ends_.emplace_hint(next, from, first);
    if (end < to) ends_.emplace_hint(next, end, to);
  }
}

bool PageRanges::overlap(PageNumber first, PageNumber end) const {
  const auto next = ends_.lower_bound(end);
  return next != ends_.begin() && std::prev(next)->second > first;
}

}  // namespace farheap::pager
