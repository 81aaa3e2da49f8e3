// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pages on their way in, read by one request. They need not follow each other in the segment, but their bytes do in the
// buffer. What was asked for comes into view. A guess (a neighbour of a missed page) and a marker (the page of a window
// that tells that the stream goes on) come in on probation.
//
// Thread-safety: none of its own.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/units.hpp"
#include "pager/neighbours.hpp"
#include "pager/page_table.hpp"

namespace farheap::pager {

class Incoming {
 public:
  enum class As : std::uint8_t { kAskedFor, kGuess, kMarker };
  struct Part {
    PageRun run;
    As as = As::kAskedFor;
    BlockId block = 0;
    [[nodiscard]] bool in_view() const { return as == As::kAskedFor; }
  };
  // Of a window of Neighbours::kMostPages every second one may be there already, and one part of it is cut in three.
  static constexpr std::uint32_t kMostParts = Neighbours::kMostPages / 2 + 2;

  // In the order of pages. Requires: fewer than kMostParts so far. An empty run is none.
  void add(PageRun run, As as) {
    if (run.count == 0) return;
    parts_[count_++] = {run, as};
    pages_ += run.count;
  }
  // The part of `run` that is `middle`, and what is before and after it.
  void add_around(PageRun run, PageRun middle, As middle_as, As others_as) {
    const PageNumber after = middle.first + middle.count;
    add({run.first, static_cast<std::uint32_t>(middle.first - run.first)}, others_as);
    add(middle, middle_as);
    add({after, static_cast<std::uint32_t>(run.first + run.count - after)}, others_as);
  }
  [[nodiscard]] std::span<Part> parts() { return {parts_.data(), count_}; }
  [[nodiscard]] std::span<const Part> parts() const { return {parts_.data(), count_}; }
  [[nodiscard]] std::uint32_t pages() const { return pages_; }

  // What is to be read into `buffer`: the parts, those that follow each other as one.
  class Reads {
   public:
    Reads(const Incoming& incoming, std::byte* buffer) {
      for (const Part& part : incoming.parts()) {
        Backing::Read* const last = count_ == 0 ? nullptr : &reads_[count_ - 1];
        if (last != nullptr && last->run.first + last->run.count == part.run.first) {
          last->run.count += part.run.count;
        } else {
          reads_[count_++] = {part.run, buffer};
        }
        buffer += part.run.count * base::kPageBytes;
      }
    }
    [[nodiscard]] std::span<const Backing::Read> all() const { return {reads_.data(), count_}; }

   private:
    std::array<Backing::Read, kMostParts> reads_{};
    std::uint32_t count_ = 0;
  };

 private:
  std::array<Part, kMostParts> parts_{};
  std::uint32_t count_ = 0, pages_ = 0;
};

}  // namespace farheap::pager
