// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory of one tree: cells of slabs. A slab is one page (or more, for one large cell) whose cells have one size.
//
// Invariant: where a block was there is never anything else than a block with as many loops and as much room for slots.
// So whoever kept its address too long (a frame on a stack that nobody looks at) counts in a wrong context, and breaks
// nothing. Addresses are kept, memory is not: what holds nothing is given back to the kernel.
//
// Thread-safety: none of its own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nodes.hpp"

namespace farheap::contexts {

class Cells {
 public:
  Cells() = default;
  ~Cells();
  Cells(const Cells&) = delete;
  Cells& operator=(const Cells&) = delete;

  // Zeroed; nullptr: there would be more than `most`, or the kernel has none.
  [[nodiscard]] Node* take_block(std::uint32_t loops, std::uint32_t slots, std::size_t most);
  [[nodiscard]] void* take_table(std::size_t bytes, std::size_t most);
  void give_block(Node* block) { give(block); }
  void give_table(void* table) { give(table); }
  // The memory of slabs that hold nothing goes back to the kernel.
  void release();

  [[nodiscard]] std::size_t held_bytes() const { return held_; }
  // So many such blocks could be taken, were there `more` bytes of memory than there are.
  [[nodiscard]] std::size_t room_for(std::uint32_t loops, std::uint32_t slots, std::size_t more) const;

 private:
  struct Kind;
  struct Slab;
  struct Chunk;
  static constexpr std::size_t kHeaderBytes = 64;

  [[nodiscard]] Kind* kind_of(std::uint32_t loops, std::uint32_t slots, std::size_t bytes);
  [[nodiscard]] void* take(Kind* kind, std::size_t most);
  void give(void* cell);
  [[nodiscard]] Slab* slab_for(Kind& kind, std::size_t most);
  [[nodiscard]] std::byte* take_pages(std::size_t bytes);
  [[nodiscard]] void* take_record(std::size_t bytes);
  [[nodiscard]] static Slab* slab_of(const void* cell);

  Kind* kinds_ = nullptr;
  Slab* spare_ = nullptr;  // of one page, which were of tables
  Chunk* chunks_ = nullptr;
  std::byte* pages_ = nullptr;
  std::size_t pages_left_ = 0;
  std::byte* records_ = nullptr;
  std::size_t records_left_ = 0;
  std::size_t held_ = 0;
};

}  // namespace farheap::contexts
