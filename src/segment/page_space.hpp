// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where an allocator gets its pages: a range of addresses of which runs of pages are handed out and taken back.
// A segment is one (its pages can leave memory); the runtime's own arena is another (its pages never do).
//
// Thread-safety: any thread.
#pragma once

#include <cstddef>
#include <farheap/result.hpp>

#include "base/units.hpp"

namespace farheap::segment {

class PageSpace {
 public:
  virtual ~PageSpace() = default;

  // The range never moves: [base, base + capacity_bytes).
  [[nodiscard]] virtual std::byte* base() const = 0;
  [[nodiscard]] virtual std::size_t capacity_bytes() const = 0;

  // A run of readable, writable pages that read as zeros.
  // Requires: bytes a positive multiple of the page size; alignment a power of two, at least the page size.
  // nullptr when the range (or the machine) has no room left.
  [[nodiscard]] virtual std::byte* obtain(std::size_t bytes, std::size_t alignment) = 0;

  // Gives a run, or a part of one, back: contents, memory and store space are dropped, the addresses are reused.
  virtual void give_back(std::byte* at, std::size_t bytes) = 0;

  // Drops the contents (they read as zeros afterwards) and memory, keeps the addresses.
  virtual void discard(std::byte* at, std::size_t bytes) = 0;

  // Makes [at, at + bytes) longer in place. True if it is now new_bytes long (the new part reads as zeros).
  [[nodiscard]] virtual bool extend(std::byte* at, std::size_t bytes, std::size_t new_bytes) = 0;
};

}  // namespace farheap::segment
