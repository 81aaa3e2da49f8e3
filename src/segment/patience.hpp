// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How long a fork waits for room for the child's copies: as long as memory becomes less. Where it does not, less long
// if nothing is on its way out than if a slow device has not written it yet, and about a second for others alone.
//
// Thread-safety: none; each fork has its own.
#pragma once

#include <cstdint>

namespace farheap::segment {

class Patience {
 public:
  // Looks, of which a caller takes one each kLookForRoom or so.
  static constexpr int kInVain = 1000;                // nothing is on its way
  static constexpr int kWhileLeaving = 15 * kInVain;  // a device that is shared by many: seconds a write
  static constexpr int kForOthers = 4000;

  struct Look {
    std::uint64_t held_bytes = 0;  // what is to become less
    bool is_for_others = false;    // this process has made its own room
    bool is_leaving = false;       // pages of it are looked for or written
  };
  // Whether the next look is worth waiting for.
  [[nodiscard]] bool lasts(const Look& look) {
    for_others_ += look.is_for_others;
    in_vain_ += look.is_leaving ? 1 : kWhileLeaving / kInVain;
    if (look.held_bytes < least_) least_ = look.held_bytes, in_vain_ = 0;
    return in_vain_ < kWhileLeaving && for_others_ < kForOthers;
  }

 private:
  std::uint64_t least_ = ~std::uint64_t{0};
  int in_vain_ = 0, for_others_ = 0;
};

}  // namespace farheap::segment
