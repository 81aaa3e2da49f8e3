// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The record of one slab: which of its slots are free. It lies in a table beside the heap, one entry a granule;
// the slots themselves are never touched. A slab of several granules has its record at the first; the entries of
// the others say how far back that is.
//
// Thread-safety: owner, size_class and granules_back are constant while any slot of the slab is in use; all else
// is guarded by the lock of the owning bin.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "heap/size_classes.hpp"

namespace farheap::heap {

using SlabIndex = std::uint32_t;  // the number of its first granule, plus one; 0: none

struct alignas(64) Slab {
  static constexpr unsigned kWordsHere = 12;                        // enough bits for slots of 96 bytes and more
  static constexpr unsigned kWordsBeside = kGranuleBytes / 8 / 64;  // for smaller slots, in a table of its own

  std::uint8_t size_class = 0;
  std::uint8_t granules_back = 0;
  std::uint8_t list = 0;         // of the bin, plus one; 0: in none
  std::uint16_t owner = 0;       // arena
  std::uint16_t used = 0;        // slots that are not free; those in thread caches count as used
  std::uint16_t first_word = 0;  // no free slot in the words before
  SlabIndex next = 0;
  SlabIndex previous = 0;
  std::uint64_t* free_bits = nullptr;  // 1: free
  std::uint64_t words_here[kWordsHere] = {};

  [[nodiscard]] static unsigned words(const SizeClass& sizes) { return (sizes.slots + 63u) / 64u; }

  void open(unsigned new_class, unsigned new_owner, std::uint64_t* words_beside) {
    const SizeClass& sizes = kSizeClasses[new_class];
    size_class = static_cast<std::uint8_t>(new_class);
    granules_back = 0;
    list = 0;
    owner = static_cast<std::uint16_t>(new_owner);
    used = 0;
    first_word = 0;
    next = previous = 0;
    unsigned count = words(sizes);
    free_bits = count <= kWordsHere ? words_here : words_beside;
    for (unsigned i = 0; i < count; ++i) free_bits[i] = ~std::uint64_t{0};
    if (unsigned rest = sizes.slots % 64u; rest != 0) free_bits[count - 1] = (std::uint64_t{1} << rest) - 1;
  }

  // Takes up to `wanted` free slots, lowest first; returns how many.
  unsigned take(const SizeClass& sizes, std::byte* at, void** out, unsigned wanted) {
    unsigned taken = 0;
    unsigned word = first_word;
    for (unsigned count = words(sizes); word < count && taken < wanted; ++word) {
      std::uint64_t bits = free_bits[word];
      while (bits != 0 && taken < wanted) {
        std::size_t slot = word * std::size_t{64} + static_cast<unsigned>(std::countr_zero(bits));
        out[taken++] = at + slot * sizes.slot_bytes;
        bits &= bits - 1;
      }
      free_bits[word] = bits;
      if (bits != 0) break;
    }
    first_word = static_cast<std::uint16_t>(word);
    used = static_cast<std::uint16_t>(used + taken);
    return taken;
  }

  // False if the slot was free already.
  [[nodiscard]] bool put_back(std::uint32_t slot) {
    unsigned word = slot / 64;
    std::uint64_t bit = std::uint64_t{1} << (slot % 64);
    if ((free_bits[word] & bit) != 0) return false;
    free_bits[word] |= bit;
    if (word < first_word) first_word = static_cast<std::uint16_t>(word);
    --used;
    return true;
  }

  [[nodiscard]] bool is_free(std::uint32_t slot) const { return ((free_bits[slot / 64] >> (slot % 64)) & 1) != 0; }
};
static_assert(sizeof(Slab) == 128);

}  // namespace farheap::heap
