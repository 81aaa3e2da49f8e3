// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loops that programs say they are about to enter (farheap/loop_hint.h): a range of pages each, which is passed in
// order, either way. From faults alone a sweep is known only after some of them, and never where it ends. Of a loop
// that was said it is known where it goes on behind a part that lay in memory, where nobody saw it pass, and where to
// stop reading ahead. What was said may be wrong: a loop that does not come where it is waited for is not waited for
// long.
//
// Thread-safety: none of its own; the pager's mutex guards it.
#pragma once

#include <array>
#include <cstdint>

#include "pager/view.hpp"

namespace farheap::pager {

class Loops {
 public:
  // A loop begins that will touch [first, end). `left`: how many pages have left memory so far, as everywhere here.
  // `gap`: how many of them left since the same loop was said before; 0: fewer than `visit`, or nobody knows.
  // False, and nothing has changed, if the same was said just now and has not begun: by several accesses of one loop.
  // (Pages may leave between them, to make room.)
  [[nodiscard]] bool begin(PageNumber first, PageNumber end, bool backward, std::uint32_t left, std::uint64_t visit,
                           std::uint32_t& gap);

  enum class Way { kNone, kForward, kBackward };
  struct Touched {
    Way way = Way::kNone;           // where the loop goes on that was expected here, unless a stream has come
    PageNumber passed = 0, to = 0;  // what it has passed meanwhile, seen or unseen
    PageNumber first = 0, end = 0;  // all of it
    bool way_back = false;
  };
  // A page was touched out of view; `in_stream`: as a stream would.
  [[nodiscard]] Touched touched(PageNumber page, bool in_stream);
  // Where a stream stops whose next page is `next` and that goes forward: at most `end`. Of one that goes backward and
  // has been down to `end`, the last page that it will touch; 0 if nobody knows.
  [[nodiscard]] PageNumber end_of(PageNumber next, PageNumber end) const;
  [[nodiscard]] PageNumber first_of(PageNumber end) const;

 private:
  static constexpr std::uint8_t kRow = 2;
  struct Loop {
    PageNumber first = 0, end = 0;  // equal: unused
    PageNumber at = 0;              // what is before it (backward: from it on) was passed
    std::uint64_t begun = 0;        // as which of all
    std::uint32_t left = 0;         // when it was said
    std::uint8_t in_vain = 0;       // expected without being there, so many times in a row
    std::uint8_t followed = 0;      // so many loops just before, each began where the last one ended
    bool backward = false;

    [[nodiscard]] bool holds(PageNumber page) const { return page >= first && page < end; }
    // One of a row of them: where that ends nobody knows.
    [[nodiscard]] bool goes_on() const { return followed >= kRow; }
    [[nodiscard]] bool is_ahead(PageNumber page) const { return backward ? page < at : page >= at; }
  };
  static constexpr std::size_t kLoops = 32;

  std::array<Loop, kLoops> loops_{};
  std::uint64_t begun_ = 0;
};

}  // namespace farheap::pager
