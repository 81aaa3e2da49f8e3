// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where what comes from the store is read into, before it is shown: a buffer for each thread that reads. A sweep reads
// 2 MiB at once, a random miss a page or some; what a buffer had for the one is given back when its thread has gone
// over to the other. All buffers of a process together would otherwise keep 12 MiB, which no budget of some tens has to
// spare.
//
// Thread-safety: each buffer belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <farheap/result.hpp>
#include <vector>

#include "os/mapping.hpp"

namespace farheap::pager {

class ReadBuffers {
 public:
  // Pages that a buffer keeps whatever it is used for.
  static constexpr std::uint32_t kKeptPages = 16;

  // As many buffers of so many pages each, in memory when they are used. kNoSpace if there are no addresses.
  [[nodiscard]] Status make(unsigned buffers, std::uint32_t pages);
  [[nodiscard]] std::byte* at(unsigned buffer) const;
  // The first `pages` of it were used, and are not needed any more.
  void used(unsigned buffer, std::uint32_t pages);
  // What is beyond the kept pages is given back now.
  void shrink(unsigned buffer);

 private:
  struct Use {
    std::uint32_t in_memory = 0;  // pages, at most
    std::uint32_t small = 0;      // times in a row that kKeptPages were enough
  };
  static constexpr std::uint32_t kSmallInARow = 8;

  os::Mapping memory_;
  std::uint32_t pages_ = 0;
  std::vector<Use> uses_;
};

}  // namespace farheap::pager
