// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In which order a program will use its pages, as somebody says who knows: a recording of an earlier run, or a plan. It
// is kept as visits: a stretch of time in which a block of pages is used again and again. Time is counted in uses of
// pages, so a sweep over N pages takes N moments. From some visit on the order may be a round that is gone through
// again and again: then visits go on for ever, and number N is one of the round's.
//
// Thread-safety: plain data.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pager/view.hpp"

namespace farheap::pager {

class PageOrder {
 public:
  using Moment = std::uint64_t;
  using Number = std::uint64_t;  // of a visit
  static constexpr Number kNone = ~Number{0};
  static constexpr Moment kNever = ~Moment{0};
  // Pages are read, and leave, in pieces of this size. Larger blocks are faster to read, and hold pages that are not
  // needed yet: a program that uses 512 places in turn has as many blocks in use.
  static constexpr std::uint32_t kBlockPages = 64;
  [[nodiscard]] static constexpr std::uint32_t block_of(PageNumber page) {
    return static_cast<std::uint32_t>(page / kBlockPages);
  }

  struct Visit {
    std::uint32_t block = 0;
    Moment first = 0, last = 0;    // uses
    Number next = kNone;           // the same block's next visit
    std::uint32_t first_page = 0;  // the one used first, counted from the block's first
  };

  // Uses of one block with fewer than `gap` others in between are one visit.
  explicit PageOrder(Moment gap) : gap_(gap) {}
  // In their order. What has no room among the blocks is left out.
  void add_use(PageNumber page);
  // The same for one who knows visits: `next` is filled in by finish(). By their first moments.
  void add_visit(const Visit& visit);
  // No uses come any more. From visit number `round` on they are a round that takes `moments`; kNone: there is no
  // round. Requires: a round has visits; all their moments are within it, and those of earlier visits before it.
  void finish(Number round = kNone, Moment moments = 0);
  // So many pages are in use at once in a pass that goes across objects, in blocks. Where memory has no room for them
  // every page of such a block is read with the whole of it, again and again: the order is worse than none.
  void set_side_by_side(std::uint64_t pages) { side_by_side_ = pages; }
  [[nodiscard]] bool fits(std::uint64_t memory_pages) const { return side_by_side_ <= memory_pages / 4 * 3; }

  // By their first moments. Requires: has(number).
  [[nodiscard]] bool has(Number number) const { return number < visits_.size() || has_round(); }
  [[nodiscard]] Visit visit(Number number) const;
  // The number of the visit that ends so much later than others, about by their last moments. Requires: has(place).
  [[nodiscard]] Number by_end(Number place) const;
  // Those that are kept: all that come once, and one round.
  [[nodiscard]] std::span<const Visit> visits() const { return visits_; }
  [[nodiscard]] bool has_round() const { return round_ != kNone; }
  // The first visit of the round.
  [[nodiscard]] Number round() const { return round_; }
  // After a visit's last moment the block may still be used for so long, unseen.
  [[nodiscard]] Moment gap() const { return gap_; }

 private:
  // Which of those that are kept it is, and how often the round was gone through before.
  [[nodiscard]] std::pair<std::size_t, std::uint64_t> kept(Number number) const {
    if (number < visits_.size()) return {number, 0};
    const std::uint64_t of_round = visits_.size() - round_;
    return {round_ + (number - round_) % of_round, (number - round_) / of_round};
  }
  Moment gap_;
  Moment now_ = 0;
  std::vector<Visit> visits_;
  std::vector<std::uint32_t> by_end_;
  Number round_ = kNone;
  Moment round_moments_ = 0;
  std::uint64_t side_by_side_ = 0;
  std::unordered_map<std::uint32_t, std::uint32_t> latest_;  // block: its latest visit, by add_use()
};

}  // namespace farheap::pager
