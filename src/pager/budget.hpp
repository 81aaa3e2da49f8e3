// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many pages the pager may keep in memory now. The budget covers the whole process tree: what the program has
// outside the heap, the runtime's own memory and the other processes are taken off first.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>

namespace farheap::pager {

class Budget {
 public:
  virtual ~Budget() = default;
  // `resident_pages`: what the pager holds at this moment; `coming_pages`: what it would like to have in addition soon.
  // Called by the evictor every few milliseconds.
  [[nodiscard]] virtual std::uint64_t page_limit(std::uint64_t resident_pages, std::uint64_t coming_pages) = 0;
};

}  // namespace farheap::pager
