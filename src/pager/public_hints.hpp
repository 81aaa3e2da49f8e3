// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The words of the public headers as hints: for whoever answers farheap_hint() and __farheap_loop().
#pragma once

#include <cstddef>
#include <optional>

#include "base/units.hpp"
#include "farheap/farheap.h"
#include "farheap/loop_hint.h"
#include "pager/hint.hpp"

namespace farheap::pager {

// Nothing: there is no such kind.
[[nodiscard]] constexpr std::optional<HintKind> hint_kind(farheap_hint_kind kind) {
  switch (kind) {
    case FARHEAP_WILL_NEED: return HintKind::kWillNeed;
    case FARHEAP_DONE_WITH: return HintKind::kDoneWith;
    case FARHEAP_STREAM: return HintKind::kStream;
    case FARHEAP_KEEP: return HintKind::kKeep;
  }
  return std::nullopt;
}

// As __farheap_loop(). Nothing: it is not worth a hint.
[[nodiscard]] constexpr std::optional<HintKind> loop_hint_kind(std::size_t bytes, std::ptrdiff_t stride,
                                                               unsigned flags) {
  constexpr std::size_t kShortest = 64 * base::kKiB;  // below it a hint costs more than the faults that it saves
  if (bytes < kShortest) return std::nullopt;
  // Sparser than pages, a sweep is as good as random: what lies between is not wanted. No limit of the type's: -stride
  // may not be one.
  constexpr auto kDense = static_cast<std::ptrdiff_t>(base::kPageBytes);
  if (stride > kDense || stride < -kDense) return std::nullopt;
  return (flags & FARHEAP_LOOP_BACKWARD) != 0 || stride < 0 ? HintKind::kLoopBackward : HintKind::kLoopForward;
}

}  // namespace farheap::pager
