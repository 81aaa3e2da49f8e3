// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which pages of a kept segment differ from what the store has, and which of them a commit is about to take. Three bits
// a page:
//
//   changed    differs from the store. A page that is not changed and in view is write-protected, so that the first
//              write to it is seen.
//   waiting    belongs to the commit under way, which has not taken its bytes yet. In view it is write-protected.
//   committing belongs to the commit under way, whether its bytes are taken or not
//
//   event                             changed  waiting  committing
//   first touch of a fresh page       set
//   first write to a protected page   set      clear: its bytes are saved for the commit first
//   the cut, changed before           clear    set      set
//   the commit has taken the bytes             clear
//   written by the evictor            clear    (no such page belongs to a commit)
//   discarded                         clear    (waits)  clear
//   the commit is done                                  clear
//   the commit has failed             set, where committing is; then all clear
//
// Thread-safety: none; the pager's mutex guards it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "os/mapping.hpp"
#include "pager/page_table.hpp"

namespace farheap::pager {

class Changes {
 public:
  // Nothing is tracked: no page counts as unchanged, and nothing is ever protected.
  Changes() = default;
  [[nodiscard]] static Result<Changes> make(std::uint64_t capacity_pages);

  [[nodiscard]] bool tracked() const { return bits_.capacity() != 0; }

  [[nodiscard]] bool is_changed(PageNumber page) const { return !tracked() || has(of(page).changed, page); }
  [[nodiscard]] bool is_waiting(PageNumber page) const { return tracked() && has(of(page).waiting, page); }
  // Must stay in memory until the commit is done.
  [[nodiscard]] bool is_committing(PageNumber page) const { return tracked() && has(of(page).committing, page); }
  // In view it has to be write-protected.
  [[nodiscard]] bool is_guarded(PageNumber page) const { return !is_changed(page) || is_waiting(page); }
  [[nodiscard]] View::Guard guard_of(PageNumber page) const {
    return is_guarded(page) ? View::Guard::kOn : View::Guard::kOff;
  }
  // Calls visit(run, guard) for parts of the run that are guarded alike.
  template <class Visit>
  void by_guard(PageRun run, const Visit& visit) const {
    while (run.count != 0) {
      PageRun part{run.first, 1};
      const View::Guard guard = guard_of(run.first);
      while (part.count < run.count && guard_of(part.first + part.count) == guard) ++part.count;
      visit(part, guard);
      run = {run.first + part.count, run.count - part.count};
    }
  }

  void note_changed(PageRun run);
  void note_stored(PageNumber page) { clear(bits_[page / kExtentPages].changed, page); }
  void note_taken(PageNumber page) { clear(bits_[page / kExtentPages].waiting, page); }
  void note_discarded(PageRun run);

  // The cut: what has changed waits for the commit from now on. Calls protect(run) for every run of it, in their order.
  template <class Protect>
  std::uint64_t cut(const Protect& protect);
  [[nodiscard]] bool any_changed() const;
  // Of the commit under way, by number: extents that have pages in it.
  [[nodiscard]] const std::vector<std::uint32_t>& extents_of_commit() const { return committing_; }
  // The first run of waiting pages at or after `from` in its extent, at most `most` long; count 0: there is none.
  [[nodiscard]] PageRun next_waiting(PageNumber from, std::uint32_t most) const;
  void finish_commit(bool done);

 private:
  static constexpr std::size_t kWords = kExtentPages / 64;
  using Bits = std::array<std::uint64_t, kWords>;
  struct ExtentBits {
    Bits changed, waiting, committing;
    std::uint64_t listed;  // in changed_extents_
  };
  [[nodiscard]] const ExtentBits& of(PageNumber page) const { return bits_[page / kExtentPages]; }
  [[nodiscard]] static bool has(const Bits& bits, PageNumber page) {
    return (bits[page % kExtentPages / 64] >> (page % 64) & 1) != 0;
  }
  static void set(Bits& bits, PageNumber page) { bits[page % kExtentPages / 64] |= std::uint64_t{1} << (page % 64); }
  static void clear(Bits& bits, PageNumber page) {
    bits[page % kExtentPages / 64] &= ~(std::uint64_t{1} << (page % 64));
  }
  [[nodiscard]] static PageRun next_run(const Bits& bits, PageNumber from, std::uint32_t most);
  void list(std::uint32_t extent);

  os::ReservedArray<ExtentBits> bits_;
  std::vector<std::uint32_t> changed_extents_;  // all that have changed pages, and perhaps others; each once
  std::vector<std::uint32_t> committing_;
};

template <class Protect>
std::uint64_t Changes::cut(const Protect& protect) {
  std::uint64_t pages = 0;
  for (const std::uint32_t extent : changed_extents_) {
    ExtentBits& bits = bits_[extent];
    bits.listed = 0;
    const PageNumber first = PageNumber{extent} * kExtentPages;
    bool any = false;
    for (PageNumber at = first; at < first + kExtentPages;) {
      const PageRun run = next_run(bits.changed, at, kExtentPages);
      if (run.count == 0) break;
      protect(run);
      pages += run.count;
      any = true;
      at = run.first + run.count;
    }
    if (!any) continue;
    bits.waiting = bits.committing = bits.changed;
    bits.changed = {};
    committing_.push_back(extent);
  }
  changed_extents_.clear();
  return pages;
}

}  // namespace farheap::pager
