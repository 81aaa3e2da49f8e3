// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which pages a flush has to look at, so that its cost follows what is written and not what is in memory.
//
//   page is            a flush                      until
//   listed             looks at it                  found as the store has it: so often in a row that to guard it is
//                                                   cheaper, or once out of view, where nobody writes to it
//   guarded            passes it by                 written to (a fault), moved, or about to be shared with a child
//   neither            passes it by                 it comes into memory, or into view
//
// To look at a page costs some 0.3 us, a fault on a guarded one some 10: after 32 looks in vain both have cost alike,
// and whatever the program does next, it has paid at most twice what the better of the two would have cost. Where a
// guard was in vain, twice as many looks come before the next one.
//
// A page that is listed may be guarded all the same: a write to it then costs a fault, and nothing is missed.
//
// Thread-safety: none of its own; the pager's mutex guards it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "os/mapping.hpp"
#include "pager/view.hpp"

namespace farheap::pager {

class FlushList {
 public:
  static constexpr std::uint32_t kLooks = 32;
  static constexpr std::uint8_t kMostDoublings = 5;

  // Nothing is listed.
  FlushList() = default;
  [[nodiscard]] static Result<FlushList> make(std::uint64_t capacity_pages);
  [[nodiscard]] bool is_on() const { return extents_.capacity() != 0; }

  // The page has come to another place, or its contents did.
  void note_moved(PageNumber page, bool in_memory);
  // In view, and as the store has it. True once it is to be guarded.
  [[nodiscard]] bool note_unchanged(PageNumber page);
  void note_changed(PageNumber page) { extents_[page / kPages].looks[page % kPages] = 0; }
  // Out of view, and in the store: it cannot differ before it moves.
  void unlist(PageNumber page) { clear(extents_[page / kPages].listed, page); }
  // It is as the store has it, and the first write to it will be told.
  void note_guarded(PageNumber page);
  // Its first write was told (ToldWrites).
  void note_written(PageNumber page);
  // A guard is not to be had, or was in vain: later, then.
  void be_patient(PageNumber page);

  // To be guarded, in their order once they were sorted. More may come while they are guarded; all are forgotten then:
  // what was left out is found quiet again.
  void note_quiet(PageNumber page) { quiet_.push_back(page); }
  [[nodiscard]] std::span<const PageNumber> quiet() const { return quiet_; }
  void sort_quiet() { std::sort(quiet_.begin(), quiet_.end()); }
  void forget_quiet() { quiet_.clear(); }

  [[nodiscard]] bool is_listed(PageNumber page) const { return has(extents_[page / kPages].listed, page); }
  [[nodiscard]] bool is_guarded(PageNumber page) const { return has(extents_[page / kPages].guarded, page); }
  // The first listed page at or after `from`; `end` if there is none before that.
  [[nodiscard]] PageNumber next(PageNumber from, PageNumber end);
  // Every guarded page before `end` is listed again. Calls release(run) for each run of them.
  template <class Release>
  void give_up_guards(PageNumber end, const Release& release);

 private:
  static constexpr std::uint32_t kPages = base::kPagesPerHugePage;
  using Bits = std::array<std::uint64_t, kPages / 64>;
  struct Extent {
    Bits listed, guarded;
    std::array<std::uint16_t, kPages> looks;  // in a row that found it unchanged
    std::array<std::uint8_t, kPages> doublings;
  };
  [[nodiscard]] static bool has(const Bits& bits, PageNumber page) {
    return (bits[page % kPages / 64] >> (page % 64) & 1) != 0;
  }
  static void set(Bits& bits, PageNumber page) { bits[page % kPages / 64] |= std::uint64_t{1} << (page % 64); }
  static void clear(Bits& bits, PageNumber page) { bits[page % kPages / 64] &= ~(std::uint64_t{1} << (page % 64)); }
  void list(PageNumber page);

  os::ReservedArray<Extent> extents_;
  os::ReservedArray<std::uint64_t> with_pages_;  // a bit for each extent that has listed ones, and perhaps for others
  std::vector<PageNumber> quiet_;
};

inline void FlushList::list(PageNumber page) {
  const PageNumber extent = page / kPages;
  set(extents_[extent].listed, page);
  with_pages_[extent / 64] |= std::uint64_t{1} << (extent % 64);
}

inline void FlushList::note_moved(PageNumber page, bool in_memory) {
  Extent& extent = extents_[page / kPages];
  clear(extent.guarded, page);
  extent.looks[page % kPages] = 0;
  if (in_memory) return list(page);
  clear(extent.listed, page);
  extent.doublings[page % kPages] = 0;
}

template <class Release>
void FlushList::give_up_guards(PageNumber end, const Release& release) {
  for (PageNumber page = 0; page < end;) {
    const std::uint64_t word = extents_[page / kPages].guarded[page % kPages / 64] >> (page % 64);
    if (word == 0) {
      page = (page / 64 + 1) * 64;
      continue;
    }
    page += static_cast<unsigned>(std::countr_zero(word));
    PageRun run{page, 0};
    const PageNumber extent_end = std::min<PageNumber>(end, (page / kPages + 1) * kPages);
    for (; page < extent_end && is_guarded(page); ++page, ++run.count) {
      note_moved(page, true);
    }
    release(run);
  }
}

}  // namespace farheap::pager
