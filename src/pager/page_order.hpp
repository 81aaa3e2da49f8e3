// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In which order a program will use its pages, as somebody says who knows: a recording of an earlier run
// (page_trace.hpp), or a plan. It is kept as visits: a stretch of time in which a block of pages is used again and
// again. Time is counted in uses of pages, so a sweep over N pages takes N moments; a moment fits into 32 bits.
//
// Thread-safety: plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "pager/page_trace.hpp"
#include "pager/view.hpp"

namespace farheap::pager {

class PageOrder {
 public:
  using Moment = std::uint32_t;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr Moment kNever = ~Moment{0};
  // Pages are read, and leave, in pieces of this size. Larger blocks are faster to read, and hold pages that are not needed
  // yet: a program that uses 512 places in turn has as many blocks in use.
  static constexpr std::uint32_t kBlockPages = 64;
  [[nodiscard]] static constexpr std::uint32_t block_of(PageNumber page) {
    return static_cast<std::uint32_t>(page / kBlockPages);
  }

  struct Visit {
    std::uint32_t block = 0;
    std::uint32_t next = kNone;    // the same block's next visit
    Moment first = 0, last = 0;    // uses
    std::uint32_t first_page = 0;  // the one used first, counted from the block's first
  };

  // Uses of one block with fewer than `gap` others in between are one visit.
  explicit PageOrder(Moment gap) : gap_(gap) {}
  // In their order. What comes after 2^32 - 1 uses, or has no room among the blocks, is left out.
  void add_use(PageNumber page);
  // No uses come any more.
  void finish();

  // By their first moments.
  [[nodiscard]] std::span<const Visit> visits() const { return visits_; }
  // The numbers of the visits, by their last moments.
  [[nodiscard]] std::span<const std::uint32_t> by_end() const { return by_end_; }
  // After a visit's last moment the block may still be used for so long, unseen.
  [[nodiscard]] Moment gap() const { return gap_; }

 private:
  Moment gap_;
  Moment now_ = 0;
  std::vector<Visit> visits_;
  std::vector<std::uint32_t> by_end_;
  std::unordered_map<std::uint32_t, std::uint32_t> latest_;  // block: its latest visit
};

// What the recording of an earlier run says. Its window hides uses; so long a block may still be in use. `read` fills
// as much of the bytes as there is, and says how much: nothing at the end. Piece by piece, because the whole of it may
// be more than there is memory for. kCorrupt, kUnavailable: as read_page_trace().
[[nodiscard]] Result<PageOrder> read_page_order(const std::function<std::size_t(std::span<std::byte>)>& read);

}  // namespace farheap::pager
