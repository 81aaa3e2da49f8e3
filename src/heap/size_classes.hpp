// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sizes that small objects are rounded up to: 8, every 16 bytes up to 128, then four a doubling up to 32 KiB,
// but eight from 512 bytes to 8 KiB: there the rounding would be the largest part of what a heap wastes. A slot
// wastes at most a quarter of itself for requests above 48 bytes, at most 15 bytes below. A slab is the
// piece of 1 to 8 granules (64 KiB) that slots of one size are cut from; its tail wastes at most 1/16.
//
// Thread-safety: constants.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/units.hpp"

namespace farheap::heap {

inline constexpr std::size_t kGranuleShift = 16;
inline constexpr std::size_t kGranuleBytes = std::size_t{1} << kGranuleShift;
inline constexpr std::size_t kChunkShift = 21;
inline constexpr std::size_t kChunkBytes = std::size_t{1} << kChunkShift;
inline constexpr std::size_t kGranulesPerChunk = kChunkBytes / kGranuleBytes;
static_assert(kChunkBytes == base::kHugePageBytes);

inline constexpr std::size_t kLargestSmall = 32 * base::kKiB;
inline constexpr unsigned kClassCount = 58;  // class 0 means "no slab": the sizes are 1 .. kClassCount - 1

struct SizeClass {
  std::uint32_t slot_bytes = 0;
  std::uint16_t slots = 0;        // in one slab
  std::uint16_t granules = 0;     // of one slab
  std::uint16_t cache_slots = 0;  // at most so many wait in one thread's cache
  std::uint64_t reciprocal = 0;   // 2^40 / slot_bytes, rounded up

  // Exact for every offset within a slab: 2^40 outweighs offset * slot_bytes.
  [[nodiscard]] constexpr std::uint32_t slot_at(std::size_t offset) const {
    return static_cast<std::uint32_t>((offset * reciprocal) >> 40);
  }
};

namespace detail {

[[nodiscard]] constexpr SizeClass make_size_class(std::uint32_t slot_bytes) {
  SizeClass made;
  made.slot_bytes = slot_bytes;
  std::size_t slots = 0;
  do {
    ++made.granules;
    slots = made.granules * kGranuleBytes / slot_bytes;
  } while (made.granules < 8 &&
           (slots < 4 || (made.granules * kGranuleBytes - slots * slot_bytes) * 16 > made.granules * kGranuleBytes));
  made.slots = static_cast<std::uint16_t>(slots);
  std::size_t cached = 128 * base::kKiB / slot_bytes;
  made.cache_slots = static_cast<std::uint16_t>(cached > 256 ? 256 : cached < 16 ? 16 : cached);
  made.reciprocal = ((std::uint64_t{1} << 40) + slot_bytes - 1) / slot_bytes;
  return made;
}

[[nodiscard]] constexpr std::array<SizeClass, kClassCount> make_size_classes() {
  std::array<SizeClass, kClassCount> classes{};
  unsigned next = 1;
  classes[next++] = make_size_class(8);
  for (std::uint32_t bytes = 16; bytes <= 128; bytes += 16) classes[next++] = make_size_class(bytes);
  for (std::uint32_t doubling = 128; doubling < kLargestSmall; doubling *= 2) {
    std::uint32_t steps = doubling >= 512 && doubling < 8192 ? 8 : 4;
    for (std::uint32_t step = 1; step <= steps; ++step) {
      classes[next++] = make_size_class(doubling + step * doubling / steps);
    }
  }
  return classes;
}

}  // namespace detail

inline constexpr std::array<SizeClass, kClassCount> kSizeClasses = detail::make_size_classes();
static_assert(kSizeClasses.back().slot_bytes == kLargestSmall);

namespace detail {

// Two tables: steps of 8 bytes up to 1 KiB, steps of 128 above (every class above 1 KiB is a multiple of 128).
inline constexpr std::size_t kFineLimit = 1024;

template <std::size_t kCount, std::size_t kStep>
[[nodiscard]] constexpr std::array<std::uint8_t, kCount> make_lookup() {
  std::array<std::uint8_t, kCount> lookup{};
  std::uint8_t size_class = 1;
  for (std::size_t i = 0; i < kCount; ++i) {
    while (kSizeClasses[size_class].slot_bytes < i * kStep) ++size_class;
    lookup[i] = size_class;
  }
  return lookup;
}
inline constexpr auto kFineLookup = make_lookup<kFineLimit / 8 + 1, 8>();
inline constexpr auto kCoarseLookup = make_lookup<kLargestSmall / 128 + 1, 128>();

}  // namespace detail

// Requires: bytes <= kLargestSmall. Zero bytes get the smallest class.
[[nodiscard]] inline unsigned class_of(std::size_t bytes) {
  return bytes <= detail::kFineLimit ? detail::kFineLookup[(bytes + 7) / 8]
                                     : detail::kCoarseLookup[(bytes + 127) / 128];
}

}  // namespace farheap::heap
