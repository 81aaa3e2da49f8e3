// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/loops.hpp"

#include <algorithm>
#include <utility>

namespace farheap::pager {

namespace {
constexpr std::uint8_t kMostInVain = 2;
constexpr std::uint64_t kRecent = 8;  // loops; as many ranges are said of one
// Loops over rows begin a few elements further in than they end.
constexpr PageNumber kNearPages = 2;

bool is_near(PageNumber a, PageNumber b) { return (a > b ? a - b : b - a) <= kNearPages; }
}  // namespace

bool Loops::begin(PageNumber first, PageNumber end, bool backward, std::uint32_t left, std::uint64_t visit,
                  std::uint32_t& gap) {
  std::uint8_t followed = 0;
  Loop* same = nullptr;
  Loop* oldest = loops_.data();
  for (Loop& loop : loops_) {
    if (loop.begun < oldest->begun) oldest = &loop;
    if (loop.first == loop.end || loop.backward != backward) continue;
    if (is_near(loop.first, first) && is_near(loop.end, end)) {
      same = &loop;
    } else if (begun_ - loop.begun < kRecent && (backward ? is_near(loop.first, end) : is_near(loop.end, first))) {
      followed = static_cast<std::uint8_t>(std::min<int>(loop.followed + 1, kRow));
    }
  }
  gap = same != nullptr ? left - same->left : 0;
  const bool just_now = same != nullptr && gap < visit;
  if (just_now) gap = 0;
  if (just_now && same->at == (backward ? same->end : same->first)) return false;
  Loop& loop = same != nullptr ? *same : *oldest;
  loop = {.first = first,
          .end = end,
          .at = backward ? end : first,
          .begun = ++begun_,
          .left = left,
          .followed = followed,
          .backward = backward};
  return true;
}

Loops::Touched Loops::touched(PageNumber page, bool in_stream) {
  Touched found;
  for (Loop& loop : loops_) {
    if (!loop.holds(page) || !loop.is_ahead(page)) continue;
    const PageNumber before = std::exchange(loop.at, loop.backward ? page : page + 1);
    const PageNumber passed = std::min(before, loop.at), to = std::max(before, loop.at);
    if (to - passed > found.to - found.passed) {
      found = {found.way, passed, to, loop.first, loop.end, loop.backward};
    }
    if (in_stream) {
      loop.in_vain = 0;
    } else if (loop.in_vain < kMostInVain) {
      ++loop.in_vain;
      found.way = loop.backward ? Way::kBackward : Way::kForward;
    }
  }
  return found;
}

// Of loops inside of others, the outermost tells. Where one ends and the next begins, the one that the stream is in.
PageNumber Loops::end_of(PageNumber next, PageNumber end) const {
  PageNumber last = 0, last_begun = 0;
  for (const Loop& loop : loops_) {
    if (loop.backward || loop.first == loop.end) continue;
    if (next > loop.first && next <= loop.end) {
      if (loop.goes_on()) return end;
      last = std::max(last, loop.end);
    } else if (next == loop.first) {
      last_begun = std::max(last_begun, loop.goes_on() ? end : loop.end);
    }
  }
  if (last == 0) last = last_begun;
  return last == 0 ? end : std::min(last, end);
}

PageNumber Loops::first_of(PageNumber end) const {
  constexpr PageNumber kNone = ~PageNumber{0};
  PageNumber first = kNone, first_begun = kNone;
  for (const Loop& loop : loops_) {
    if (!loop.backward || loop.first == loop.end) continue;
    if (end >= loop.first && end < loop.end) {
      if (loop.goes_on()) return 0;
      first = std::min(first, loop.first);
    } else if (end == loop.end) {
      first_begun = std::min(first_begun, loop.goes_on() ? 0 : loop.first);
    }
  }
  if (first == kNone) first = first_begun;
  return first == kNone ? 0 : first;
}

}  // namespace farheap::pager
