// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the allocators' own books get their memory: from mmap, or, for books that outlive the process, from the kept
// segment that they describe.
//
// Thread-safety: the two at hand: any thread. Of others each says it; the books call theirs under their own locks.
#pragma once

#include <cstddef>

namespace farheap::base {

class MetadataSource {
 public:
  // Zero-filled and aligned to pages; only pages that are touched cost memory. nullptr when there is no room.
  // Never calls malloc.
  [[nodiscard]] virtual void* reserve(std::size_t bytes) noexcept = 0;

  // True: who got memory here unmaps it at his end. False: it stays where it is.
  [[nodiscard]] bool is_mapped() const noexcept { return is_mapped_; }

 protected:
  explicit constexpr MetadataSource(bool is_mapped = false) noexcept : is_mapped_(is_mapped) {}
  ~MetadataSource() = default;

 private:
  bool is_mapped_;
};

// For sparse tables of any length: of the addresses, only what is touched counts.
[[nodiscard]] MetadataSource& mapped_tables() noexcept;
// For blocks that are filled from their beginning.
[[nodiscard]] MetadataSource& mapped_blocks() noexcept;

}  // namespace farheap::base
