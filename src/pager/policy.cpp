// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/policy.hpp"

namespace farheap::pager {

void BlockList::push_newest(BlockId id) {
  Block& block = table_.block(id);
  block.queue = name_;
  block.older = newest_;
  block.newer = 0;
  (newest_ != 0 ? table_.block(newest_).newer : oldest_) = id;
  newest_ = id;
  pages_ += block.pages;
}

void BlockList::push_oldest(BlockId id) {
  Block& block = table_.block(id);
  block.queue = name_;
  block.older = 0;
  block.newer = oldest_;
  (oldest_ != 0 ? table_.block(oldest_).older : newest_) = id;
  oldest_ = id;
  pages_ += block.pages;
}

void BlockList::remove(BlockId id) {
  Block& block = table_.block(id);
  (block.older != 0 ? table_.block(block.older).newer : oldest_) = block.newer;
  (block.newer != 0 ? table_.block(block.newer).older : newest_) = block.older;
  block.older = block.newer = 0;
  block.queue = Queue::kNone;
  pages_ -= block.pages;
}

void Policy::entered(BlockId id, bool ghost, bool stream) {
  if (kind_ == PolicyKind::kClock) return main_.push_newest(id);
  if (stream) return (++stream_blocks_ % 16 == 0 ? main_ : stream_).push_newest(id);
  (ghost ? main_ : small_).push_newest(id);
}

void Policy::proven(BlockId id) { main_.push_newest(id); }

void Policy::keep(BlockId id) {
  remove(id);
  keep_.push_newest(id);
}

BlockId Policy::take_oldest(BlockList& list) {
  // A busy block was touched while it was being written; it cannot leave again before that is over.
  for (BlockId id = list.oldest(); id != 0; id = table_.block(id).newer) {
    if (table_.block(id).busy) continue;
    list.remove(id);
    return id;
  }
  return 0;
}

BlockId Policy::take_victim(std::uint64_t memory_pages) {
  if (stream_.pages() > stream_share(memory_pages) && ++victims_ % 16 != 0) {
    if (const BlockId id = take_oldest(stream_)) return id;
  }
  BlockList& first = small_.pages() > memory_pages / 10 ? small_ : main_;
  BlockList& second = &first == &small_ ? main_ : small_;
  if (const BlockId id = take_oldest(first)) return id;
  if (const BlockId id = take_oldest(second)) return id;
  if (const BlockId id = take_oldest(stream_)) return id;
  return take_oldest(keep_);
}

BlockList* Policy::list_of(BlockId id) {
  switch (table_.block(id).queue) {
    case Queue::kSmall: return &small_;
    case Queue::kMain: return &main_;
    case Queue::kStream: return &stream_;
    case Queue::kKeep: return &keep_;
    default: return nullptr;
  }
}

void Policy::remove(BlockId id) {
  if (BlockList* list = list_of(id)) list->remove(id);
}

void Policy::shrink(BlockId id, std::uint32_t pages) {
  if (BlockList* list = list_of(id)) list->shrink(pages);
}

}  // namespace farheap::pager
