// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where segments lie: at the same address in every process and every run. The middle of the x86-64 user space is cut
// into slots of 1 TiB, well away from where the loader, the kernel and sanitizers put things; a heap's id names its
// slot, so that heaps made apart seldom collide.
#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace farheap::segment {

#ifdef __SANITIZE_THREAD__
// gcc's ThreadSanitizer has the middle for itself and leaves a program the lowest 512 GiB: small slots there, for the
// tests. No heap outlives such a build.
inline constexpr std::uint64_t kSlotBytes = 8 * base::kGiB;
inline constexpr std::uint64_t kFirstSlotAddress = 64 * base::kGiB;
inline constexpr std::uint32_t kAddressSlots = 40;  // up to 384 GiB
inline constexpr std::uint64_t kLargestSegment = kSlotBytes;
inline constexpr std::uint64_t kFirstLargeAddress = kFirstSlotAddress, kEndOfLarge = kFirstSlotAddress;
#else
inline constexpr std::uint64_t kSlotBytes = base::kTiB;
inline constexpr std::uint64_t kFirstSlotAddress = 0x2000'0000'0000;  // 32 TiB
inline constexpr std::uint32_t kAddressSlots = 40;                    // up to 72 TiB
// Larger segments lie anywhere between AddressSanitizer's shadow and where position-independent programs are loaded.
// What is staged has as many addresses as the segment, and the longest other gap has 40 TiB.
inline constexpr std::uint64_t kLargestSegment = 32 * base::kTiB;
inline constexpr std::uint64_t kFirstLargeAddress = 20 * base::kTiB, kEndOfLarge = 84 * base::kTiB;
#endif

// What a process reserves when it pages: the heap, its staging, and the tables and arenas for both, which are less than
// a quarter of a slot.
inline constexpr std::uint64_t kAddressesOfAProcess = 2 * kSlotBytes + kSlotBytes / 4;

[[nodiscard]] constexpr std::uint64_t slot_address(std::uint32_t heap_id) {
  return kFirstSlotAddress + (heap_id % kAddressSlots) * kSlotBytes;
}

}  // namespace farheap::segment
