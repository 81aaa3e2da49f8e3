// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/write_watch.hpp"

namespace farheap::pager {

void WriteWatch::ask(Extent& extent, PageNumber first) {
  View::Written written;
  is_known_ = view_.take_written(first, written);
  if (!is_known_) return;
  WriteBits& bits = extent.writes;
  bits.written |= written & bits.watched;
  bits.watched.set();
  bits.asked_at = looked_at_;
}

bool WriteWatch::was_written(BlockId id, std::uint64_t memory_pages) {
  const Block& block = table_.block(id);
  if (!is_known_ || block.leave_first || block.count > kMostPages) return false;
  looked_at_ += block.pages;
  const PageNumber extent_first = block.first / kExtentPages * kExtentPages;
  Extent& extent = table_.extent(block.first);
  WriteBits& bits = extent.writes;
  if (bits.asked_at == 0 || looked_at_ - bits.asked_at > memory_pages / kPartOfRound) ask(extent, extent_first);
  bool was_written = false;
  for (PageNumber at = block.first - extent_first; at < block.first - extent_first + block.count; ++at) {
    if (extent.tag[at] != id || extent.state[at] != PageState::kPresent) continue;
    was_written |= bits.written[at];
    bits.written[at] = false;
  }
  return was_written;
}

}  // namespace farheap::pager
