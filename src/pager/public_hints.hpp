// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The words of the public headers as hints: for whoever answers farheap_hint(), farheap_expect_order() and
// __farheap_loop(). A program may link that alone, without the pager: so all of it is here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/units.hpp"
#include "farheap/farheap.h"
#include "farheap/loop_hint.h"
#include "pager/hint.hpp"
#include "pager/page_order.hpp"

namespace farheap::pager {

// Nothing: there is no such kind.
[[nodiscard]] constexpr std::optional<HintKind> hint_kind(farheap_hint_kind kind) {
  switch (kind) {
    case FARHEAP_WILL_NEED: return HintKind::kWillNeed;
    case FARHEAP_DONE_WITH: return HintKind::kDoneWith;
    case FARHEAP_STREAM: return HintKind::kStream;
    case FARHEAP_KEEP: return HintKind::kKeep;
    case FARHEAP_NORMAL: return HintKind::kNormal;
  }
  return std::nullopt;
}

// Whether farheap_expect_order() takes it. An order of more visits would take long to make, and much memory.
inline constexpr std::uint64_t kMostSaidVisits = std::uint64_t{1} << 22;
[[nodiscard]] constexpr bool is_order(const farheap_step* steps, std::size_t count, std::size_t round) {
  constexpr std::uint64_t kBlockBytes = PageOrder::kBlockPages * base::kPageBytes;
  if (steps == nullptr && count != 0) return false;
  if (round != FARHEAP_ONCE && round >= count) return false;
  std::uint64_t visits = 0;
  for (const farheap_step& step : std::span(steps, count)) {
    if (step.way != FARHEAP_FORWARD && step.way != FARHEAP_BACKWARD) return false;
    const std::uint64_t blocks = step.bytes / kBlockBytes;
    if (blocks > kMostSaidVisits) return false;
    visits += blocks + (step.bytes % kBlockBytes != 0 ? 1 : 0);
    if (visits > kMostSaidVisits) return false;
  }
  return true;
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
