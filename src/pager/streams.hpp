// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recognises sequential access, several streams at a time, from the misses alone, and says how much to fetch and
// what to read ahead. A stream's window doubles each time it goes on, from kFirstPages to the largest block.
//
// How a stream is followed once its pages arrive before they are touched: the first page of every window read
// ahead is held out of view (a marker); touching it costs a fault without I/O and asks for the next window. Several
// windows may be on their way, so a stream goes on with a touch of any page between where it was and their end.
//
// Thread-safety: none of its own; the pager's mutex guards it.
#pragma once

#include <array>
#include <cstdint>

#include "pager/view.hpp"

namespace farheap::pager {

class Streams {
 public:
  static constexpr std::uint32_t kFirstPages = 4;
  static constexpr std::uint32_t kSweepPages = 32;  // a window that large was earned by several hits in a row
  static constexpr std::uint32_t kSlackPages = 2;   // a stream may skip this many pages

  struct Advice {
    bool sequential = false;
    bool backward = false;
    std::uint32_t pages = 1;  // to fetch at once, the touched page included
    bool around = false;      // ... the aligned block that it is in, wherever in it
  };

  explicit Streams(std::uint32_t largest_pages) : largest_pages_(largest_pages) {
    forward_.fill(kNowhere);
    reach_.fill(kSlackPages);
    backward_.fill(kNowhere);
  }

  // A page was touched that was not in view. Tells whether it continues a stream.
  [[nodiscard]] Advice touched(PageNumber page);
  // What touched() has just begun is taken for a stream at once, with a window of `pages`.
  [[nodiscard]] Advice presume(bool backward, std::uint32_t pages);
  // A stream will begin at `page`, with a window of `pages`: what touched() would know after some misses.
  void begin(PageNumber page, bool backward, std::uint32_t pages);
  // How many streams are going on now: what is read ahead must be shared between them.
  [[nodiscard]] std::uint32_t active() const;
  // The stream that touched() matched last will next be noticed at `page` (after what was fetched or read ahead).
  void continues_at(PageNumber page) { continues_between(page, page); }
  // The same, where all from `first` on has been or is being read ahead: it may be noticed there, too, but only soon.
  void continues_between(PageNumber first, PageNumber page);

 private:
  struct Stream {
    PageNumber first = 0, next = 0;  // first <= next; equal where nothing is read ahead
    PageNumber last = 0;
    std::uint32_t pages = 0;  // window; 0: unused
    std::int8_t direction = 0;
    std::uint64_t used = 0;
  };
  // Where touching goes on with a stream, in 32 bits, for a quick look over all of them: kNowhere if it cannot.
  static constexpr std::size_t kStreams = 384, kLookedAtTogether = 64;
  static constexpr std::uint32_t kNowhere = 1u << 31;
  [[nodiscard]] bool continues(Stream& stream, PageNumber page) const;
  [[nodiscard]] Stream* find(PageNumber page);
  [[nodiscard]] Stream& least_used();
  void note(const Stream& stream);

  std::uint32_t largest_pages_;
  std::array<Stream, kStreams> streams_{};
  std::array<std::uint32_t, kStreams> forward_, reach_, backward_;
  Stream* matched_ = nullptr;
  std::size_t hand_ = 0;
  std::uint64_t clock_ = 0;
};

}  // namespace farheap::pager
