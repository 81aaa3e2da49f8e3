// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much of memory is worth keeping in probation. Probation tells pages that are in use from pages that are not;
// where all are used alike (uniformly random access) there is nothing to tell, and every touch there is a fault for
// nothing. The measure: touches a page in probation gets, over touches a page gets that has left. Alike, and probation
// shrinks; well apart, and it has the share that the option gives.
//
// Thread-safety: none of its own; the pager's mutex guards it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace farheap::pager {

class ProbationShare {
 public:
  explicit ProbationShare(std::uint32_t most_percent) : most_(most_percent), percent_(most_percent) {}

  [[nodiscard]] std::uint32_t percent() const { return percent_; }

  // A page was touched that no stream and no neighbour announced: in probation, or after it had left. `probation` and
  // `left` are how many pages there are of either kind.
  void touched(bool in_probation, std::uint64_t probation, std::uint64_t left) {
    in_probation ? ++rescued_ : ++missed_;
    if (rescued_ + missed_ < kWindow) return;
    // rescued / probation against missed / left
    const std::uint64_t here = rescued_ * left;
    const std::uint64_t there = missed_ * std::max<std::uint64_t>(probation, 1);
    if (4 * here < 5 * there) {
      percent_ = std::max(percent_ / 2, std::min(most_, 1u));
    } else if (2 * here > 3 * there) {
      percent_ = std::min(percent_ * 2, most_);
    }
    rescued_ = missed_ = 0;
  }

 private:
  static constexpr std::uint32_t kWindow = 4096;
  std::uint32_t most_;
  std::uint32_t percent_;
  std::uint64_t rescued_ = 0, missed_ = 0;
};

}  // namespace farheap::pager
