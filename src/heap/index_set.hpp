// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A set of small numbers (chunk numbers) that finds its lowest member in four steps: a bit for each number, and
// above it levels with a bit for each word that is not empty.
//
// Thread-safety: none; the owner locks.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "heap/metadata.hpp"

namespace farheap::heap {

class IndexSet {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};
  explicit IndexSet(std::size_t limit, base::MetadataSource& source = base::mapped_tables()) noexcept
      : levels_{Level(words(limit, 1), source), Level(words(limit, 2), source), Level(words(limit, 3), source),
                Level(words(limit, 4), source)},
        level_words_{words(limit, 1), words(limit, 2), words(limit, 3), words(limit, 4)} {}

  [[nodiscard]] bool usable() const noexcept {
    return levels_[0].usable() && levels_[1].usable() && levels_[2].usable() && levels_[3].usable();
  }

  void insert(std::size_t index) noexcept {
    for (const Level& level : levels_) {
      std::uint64_t& word = level[index / 64];
      bool was_empty = word == 0;
      word |= std::uint64_t{1} << (index % 64);
      if (!was_empty) return;
      index /= 64;
    }
  }

  void erase(std::size_t index) noexcept {
    for (const Level& level : levels_) {
      std::uint64_t& word = level[index / 64];
      word &= ~(std::uint64_t{1} << (index % 64));
      if (word != 0) return;
      index /= 64;
    }
  }

  [[nodiscard]] std::size_t lowest() const noexcept { return lowest_from(0); }

  // The lowest member that is at least `index`, or kNone.
  [[nodiscard]] std::size_t lowest_from(std::size_t index) const noexcept {
    for (int level = 0; level < kLevels; ++level) {
      std::size_t word_index = index / 64;
      if (word_index >= level_words_[level]) return kNone;
      std::uint64_t word = levels_[level][word_index] & (~std::uint64_t{0} << (index % 64));
      if (word != 0) return descend(level, word_index * 64 + static_cast<std::size_t>(std::countr_zero(word)));
      index = word_index + 1;  // the next word, seen from the level above
    }
    return kNone;
  }

  void move(const base::AddressShift& shift) noexcept {
    for (Level& level : levels_) level.move(shift);
  }

  // For books that may be damaged: whether the levels agree and the tables have the right lengths.
  [[nodiscard]] bool is_sound(std::size_t limit, const KeptRange& kept) const noexcept {
    for (int level = 0; level < kLevels; ++level) {
      if (level_words_[level] != words(limit, level + 1) || !levels_[level].is_sound(level_words_[level], kept))
        return false;
    }
    for (int level = 0; level + 1 < kLevels; ++level) {
      for (std::size_t i = 0; i < level_words_[level]; ++i) {
        bool marked = (levels_[level + 1][i / 64] >> (i % 64) & 1) != 0;
        if (marked != (levels_[level][i] != 0)) return false;
      }
    }
    return true;
  }
  // Requires: below the limit.
  [[nodiscard]] bool holds(std::size_t index) const noexcept {
    return (levels_[0][index / 64] >> (index % 64) & 1) != 0;
  }

 private:
  friend struct BookLayout;
  using Level = SparseTable<std::uint64_t>;
  static constexpr int kLevels = 4;

  [[nodiscard]] static constexpr std::size_t words(std::size_t limit, int level) {
    for (; level > 0; --level) limit = limit / 64 + 1;
    return limit;
  }
  [[nodiscard]] std::size_t descend(int level, std::size_t index) const noexcept {
    while (level-- > 0) index = index * 64 + static_cast<std::size_t>(std::countr_zero(levels_[level][index]));
    return index;
  }

  Level levels_[kLevels];
  std::size_t level_words_[kLevels];
};

}  // namespace farheap::heap
