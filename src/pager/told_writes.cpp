// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/told_writes.hpp"

namespace farheap::pager {

Status ToldWrites::begin(std::uint64_t capacity_pages) {
  const std::uint64_t count = (capacity_pages + kPages - 1) / kPages;
  auto pages = Bits::make(count * kPages / 64);
  if (!pages) return fail(std::move(pages.error()));
  auto extents = Bits::make((count + 63) / 64);
  if (!extents) return fail(std::move(extents.error()));
  pages_ = std::move(*pages);
  extents_ = std::move(*extents);
  on_ = true;
  return {};
}

}  // namespace farheap::pager
