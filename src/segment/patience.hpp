// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How long a fork waits for room for the child's copies. It waits as long as what is held becomes less. If that stays
// the same, it waits 0.2 s, or 3 s while a device still writes. For others alone it waits about a second at most.
//
// Thread-safety: none; each fork has its own.
#pragma once

#include <cstdint>

namespace farheap::segment {

class Patience {
 public:
  // Counted in looks, which the caller takes about every 0.2 ms.
  static constexpr int kInVain = 1000;                // nothing is on its way
  static constexpr int kWhileLeaving = 15 * kInVain;  // a write to a busy device may take seconds
  static constexpr int kForOthers = 4000;

  struct Look {
    std::uint64_t held_bytes = 0;  // what is to become less
    bool is_for_others = false;    // this process has made its own room
    bool is_leaving = false;       // pages of it are looked for or written
  };
  // True: the next look is worth waiting for.
  [[nodiscard]] bool lasts(const Look& look) {
    for_others_ += look.is_for_others;
    in_vain_ += look.is_leaving && !look.is_for_others ? 1 : kWhileLeaving / kInVain;
    if (look.held_bytes < least_) least_ = look.held_bytes, in_vain_ = 0;
    return in_vain_ < kWhileLeaving && for_others_ < kForOthers;
  }

 private:
  std::uint64_t least_ = ~std::uint64_t{0};
  int in_vain_ = 0, for_others_ = 0;
};

}  // namespace farheap::segment
