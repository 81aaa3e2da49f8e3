// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "heap/metadata.hpp"

#include <algorithm>
#include <new>

#include "base/units.hpp"

namespace farheap::heap {

MetadataArena::~MetadataArena() {
  while (source_->is_mapped() && blocks_ != nullptr) {
    Block* block = blocks_;
    blocks_ = block->next;
    munmap(block, block->bytes);
  }
}

void MetadataArena::move(const base::AddressShift& shift) noexcept {
  shift(next_);
  shift(blocks_);
  for (Block* block = blocks_; block != nullptr; block = block->next) shift(block->next);
}

void* MetadataArena::obtain(std::size_t bytes) noexcept {
  constexpr std::size_t kAlignment = 64;
  constexpr std::size_t kBlockBytes = base::kMiB;
  bytes = base::round_up(bytes, kAlignment);
  if (bytes > left_) {
    std::size_t block_bytes = std::max(kBlockBytes, base::round_up(bytes + kAlignment, base::kPageBytes));
    void* at = source_->reserve(block_bytes);
    if (at == nullptr) return nullptr;
    blocks_ = ::new (at) Block{blocks_, block_bytes};
    next_ = static_cast<std::byte*>(at) + kAlignment;
    left_ = block_bytes - kAlignment;
  }
  std::byte* piece = next_;
  next_ += bytes;
  left_ -= bytes;
  return piece;
}

}  // namespace farheap::heap
