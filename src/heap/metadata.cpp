// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "heap/metadata.hpp"

#include <algorithm>
#include <new>

#include "base/inside_runtime.hpp"
#include "base/units.hpp"

namespace farheap::heap {

// Inside the runtime: in a program that runs on Farheap, mmap() is Farheap's own, and the books would be paged.
void* reserve_metadata(std::size_t bytes) noexcept {
  base::InsideRuntime inside;
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  // A huge page for a sparse table would bring in 2 MiB for one entry.
  madvise(at, bytes, MADV_NOHUGEPAGE);
  madvise(at, bytes, MADV_DONTDUMP);  // sparse tables again: gigabytes of holes in a core
  return at;
}

MetadataArena::~MetadataArena() {
  while (blocks_ != nullptr) {
    Block* block = blocks_;
    blocks_ = block->next;
    munmap(block, block->bytes);
  }
}

void* MetadataArena::obtain(std::size_t bytes) noexcept {
  constexpr std::size_t kAlignment = 64;
  constexpr std::size_t kBlockBytes = base::kMiB;
  bytes = base::round_up(bytes, kAlignment);
  if (bytes > left_) {
    std::size_t block_bytes = std::max(kBlockBytes, base::round_up(bytes + kAlignment, base::kPageBytes));
    void* at = reserve_metadata(block_bytes);
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
