// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many pages around a random miss are worth fetching with it. The neighbours of a missed page come in on
// probation: touching one proves that fetching it was right, its leaving untouched that it was not. The share that was
// right is kept for each extent, and for all of them together as the first guess for an extent nothing is known of.
//
// What a neighbour costs (transfer, staging, a page that had to leave for it) is about a fifth of what it saves (a miss
// becomes a touch in probation): from a fifth on, neighbours pay.
//
// They need not be a guess. Where enough of them are used they come into view at once, and pages leave and come back in
// pieces of that size: a fault for each piece instead of a fault for each page. Probation is short, so that fewer of
// them prove themselves there than are used in view; hence the low bounds (docs/benchmarks/programs.md,
// "Neighbours that are used"). One such touch in kUnasked leaves them on probation, so that a change is seen.
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
    const std::uint32_t percent = right_percent(extent);
    if (percent < 20) return ++misses_ % kProbe == 0 ? 2 : 1;  // now and then one more, to learn of a change
    if (percent < 35) return 4;
    return percent < 60 ? 8 : kMostPages;
  }

  // ... so many of them into view.
  [[nodiscard]] std::uint32_t sure_pages(Extent& extent) const {
    const std::uint32_t percent = right_percent(extent);
    if (percent >= kMostlyRight) return kMostPages;
    if (percent >= kOftenRight) return 8;
    return percent_of(right_ / kScale) >= kRightAnywhere ? 4 : 1;
  }
  // True for one touch in kUnasked: the pager then leaves the neighbours on probation.
  [[nodiscard]] static bool asks(Extent& extent) {
    extent.unasked = static_cast<std::uint8_t>((extent.unasked + 1) % kUnasked);
    return extent.unasked == 0;
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
  static constexpr std::uint32_t kUnasked = 64;
  // Percent: of an extent, and of all, for one extent has too few guesses to tell a quarter from a half. With 15
  // instead of 35 a server with skewed look-ups read the store half as often again.
  static constexpr std::uint32_t kMostlyRight = 90, kOftenRight = 65, kRightAnywhere = 35;
  [[nodiscard]] static std::uint32_t percent_of(std::uint32_t right) { return right * 100 / 255; }
  [[nodiscard]] std::uint32_t right_percent(Extent& extent) const {
    if (extent.neighbours_right == 0) extent.neighbours_right = static_cast<std::uint8_t>(right_ / kScale);
    return percent_of(extent.neighbours_right);
  }
  static void step(std::uint32_t& value, bool up, std::uint32_t most, std::uint32_t part) {
    value = up ? value + (most - value) / part : value - value / part;
  }

  // 40 % until something is learned. With 63 % zstd read the store a third more often, and no program less often.
  std::uint32_t right_ = 102 * kScale;
  std::uint32_t misses_ = 0;
};

}  // namespace farheap::pager
