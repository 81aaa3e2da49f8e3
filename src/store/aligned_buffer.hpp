// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory that a device may write from and read into directly: what decorators turn blocks into.
//
// Thread-safety: a plain value.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <span>

#include "base/units.hpp"

namespace farheap::store {

class AlignedBuffer {
 public:
  explicit AlignedBuffer(std::size_t bytes)
      : at_(static_cast<std::byte*>(std::aligned_alloc(base::kPageBytes, base::round_up(bytes + 1, base::kPageBytes)))),
        bytes_(bytes) {}
  ~AlignedBuffer() { std::free(at_); }
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;
  [[nodiscard]] bool is_there() const { return at_ != nullptr; }
  [[nodiscard]] std::span<std::byte> part(std::size_t from, std::size_t bytes) const {
    return std::span(at_, bytes_).subspan(from, bytes);
  }

 private:
  std::byte* at_;
  std::size_t bytes_;
};

}  // namespace farheap::store
