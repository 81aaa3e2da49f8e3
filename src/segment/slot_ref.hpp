// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the pages and the books of a kept segment rest, as it is written down in its store.
//
// A slot is a block of the store. It is written once and then immutable while any version refers to it. With it stands
// its epoch: how many snapshots there had been when it was written. A slot of epoch E that the newest state refers to
// no longer is still part of the snapshots from number E on, and of none before: that is all that has to be known to
// give it back at the right time (birth times and dead lists, as in ZFS), and nobody counts references.
//
// Thread-safety: plain values.
#pragma once

#include <array>
#include <cstdint>

#include "base/units.hpp"

namespace farheap::segment {

// A block as words: what books are made of.
using BlockWords = std::array<std::uint64_t, base::kPageBytes / 8>;

class SlotRef {
 public:
  static constexpr unsigned kSlotBits = 40;  // 4 PiB of pages
  static constexpr std::uint64_t kSlots = std::uint64_t{1} << kSlotBits;
  static constexpr std::uint64_t kEpochs = std::uint64_t{1} << (64 - kSlotBits);

  constexpr SlotRef() = default;
  constexpr explicit SlotRef(std::uint64_t word) : word_(word) {}
  // Requires: 0 < slot < kSlots, epoch < kEpochs. (Block 0 is a superblock.)
  constexpr SlotRef(std::uint64_t slot, std::uint64_t epoch) : word_(epoch << kSlotBits | slot) {}

  [[nodiscard]] constexpr bool is_nowhere() const { return word_ == 0; }
  [[nodiscard]] constexpr std::uint64_t slot() const { return word_ & (kSlots - 1); }
  [[nodiscard]] constexpr std::uint64_t epoch() const { return word_ >> kSlotBits; }
  [[nodiscard]] constexpr std::uint64_t word() const { return word_; }
  friend constexpr bool operator==(SlotRef, SlotRef) = default;

 private:
  std::uint64_t word_ = 0;
};

}  // namespace farheap::segment
