// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Locks for runs of blocks: a run takes the stripes that its blocks fall into, always in one order.
//
// Thread-safety: locks; free again in a forked child. To clang they are one lock: it knows whether a guard is there,
// not for which blocks.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "store/fork_lock.hpp"

namespace farheap::store {

class FARHEAP_CAPABILITY("stripes") Stripes {
 public:
  static constexpr std::uint64_t kBlocks = 64;  // neighbours in one stripe

  [[nodiscard]] static std::uint64_t of(std::uint64_t first, std::uint64_t count) {
    const std::uint64_t low = first / kBlocks;
    const std::uint64_t high = (first + count - 1) / kBlocks;
    if (high - low >= 63) return ~std::uint64_t{0};
    std::uint64_t mask = 0;
    for (auto stripe = low; stripe <= high; ++stripe) mask |= std::uint64_t{1} << stripe % 64;
    return mask;
  }

  class FARHEAP_SCOPED_CAPABILITY Guard {
   public:
    Guard(Stripes& stripes, std::uint64_t mask) FARHEAP_ACQUIRE(stripes) : stripes_(stripes), mask_(mask) {
      for (auto left = mask_; left != 0; left &= left - 1) stripes_.locks_[std::countr_zero(left)].lock();
    }
    ~Guard() FARHEAP_RELEASE() {
      for (auto left = mask_; left != 0; left &= left - 1) stripes_.locks_[std::countr_zero(left)].unlock();
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    Stripes& stripes_;
    std::uint64_t mask_;
  };

 private:
  std::array<ForkLock, 64> locks_;
};

}  // namespace farheap::store
