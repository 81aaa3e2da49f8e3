// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many pages around a random miss are worth fetching with it. The neighbours of a missed page come in on
// probation: touching one proves that fetching it was right, its leaving untouched that it was not. The share that was
// right is kept for each extent, and for all of them together as the first guess for an extent nothing is known of.
//
// What a neighbour costs (transfer, staging, a page that had to leave for it) is about a fifth of what it saves (a miss
// becomes a touch in probation): from a fifth on, neighbours pay.
//
// Thread-safety: none of its own; the pager's mutex guards it.
#pragma once

#include <algorithm>

#include "pager/page_table.hpp"

namespace farheap::pager {

class Neighbours {
 public:
  static constexpr std::uint32_t kMostPages = 16;

  // Pages to fetch at a miss in this extent, the missed one included; a power of two.
  [[nodiscard]] std::uint32_t pages(Extent& extent) {
    if (extent.neighbours_right == 0) extent.neighbours_right = static_cast<std::uint8_t>(right_ / kScale);
    const std::uint32_t percent = extent.neighbours_right * 100u / 255;
    if (percent < 20) return ++misses_ % kProbe == 0 ? 2 : 1;  // now and then one more, to learn of a change
    if (percent < 35) return 4;
    return percent < 60 ? 8 : kMostPages;
  }

  void learn(Extent& extent, bool right, std::uint32_t pages) {
    for (std::uint32_t i = 0; i < pages; ++i) {
      step(right_, right, 255 * kScale, 64);
      std::uint32_t own = extent.neighbours_right * kScale;
      step(own, right, 255 * kScale, 16);
      extent.neighbours_right = static_cast<std::uint8_t>(std::max(own / kScale, 1u));
    }
  }

 private:
  static constexpr std::uint32_t kScale = 256;  // so that small steps are not lost in rounding
  static constexpr std::uint32_t kProbe = 64;
  static void step(std::uint32_t& value, bool up, std::uint32_t most, std::uint32_t part) {
    value = up ? value + (most - value) / part : value - value / part;
  }

  std::uint32_t right_ = 60 * kScale;
  std::uint32_t misses_ = 0;
};

}  // namespace farheap::pager
