// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fills a store from a slot on, one slot after the other, with blocks and with pages of another store: what is asked
// for in any order is read in that of the other store's slots, and written in one piece.
//
// Thread-safety: none.
#pragma once

#include <vector>

#include "segment/slot_io.hpp"
#include "segment/slot_ref.hpp"
#include "store/aligned_buffer.hpp"

namespace farheap::segment {

class SlotWriter {
 public:
  // Both stores outlive it.
  SlotWriter(Store& source, Store& target, std::uint64_t first);

  // The slot that it has from now on. An error may be one of an earlier block or page.
  [[nodiscard]] Result<std::uint64_t> put(const BlockWords& block);
  [[nodiscard]] Result<std::uint64_t> fetch(std::uint64_t source_slot);
  // What was put. Requires: `into` is aligned to a page.
  [[nodiscard]] Status read(std::uint64_t slot, BlockWords& into);
  // All of it is in the target.
  [[nodiscard]] Status flush();
  // From there on it is filled again. Requires: it was flushed with that as the next one.
  void go_back_to(std::uint64_t slot);

  [[nodiscard]] std::uint64_t next() const { return first_ + count_; }
  [[nodiscard]] Store& target() const { return target_; }

 private:
  static constexpr std::size_t kSlots = 1024;  // in memory
  [[nodiscard]] Result<std::byte*> take();
  [[nodiscard]] std::byte* at(std::size_t index) const {
    return buffer_.part(index * base::kPageBytes, base::kPageBytes).data();
  }

  Store& source_;
  Store& target_;
  store::AlignedBuffer buffer_;  // of slots [first_, first_ + count_)
  std::uint64_t first_;
  std::size_t count_ = 0;
  struct Wanted {
    std::uint64_t slot;  // of the source
    std::byte* into;
  };
  std::vector<Wanted> wanted_;
};

}  // namespace farheap::segment
