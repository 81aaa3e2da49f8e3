// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/flush_list.hpp"

#include <algorithm>

namespace farheap::pager {

Result<FlushList> FlushList::make(std::uint64_t capacity_pages) {
  const std::uint64_t count = (capacity_pages + kPages - 1) / kPages;
  auto extents = os::ReservedArray<Extent>::make(count);
  if (!extents) return fail(std::move(extents.error()));
  auto with_pages = os::ReservedArray<std::uint64_t>::make((count + 63) / 64);
  if (!with_pages) return fail(std::move(with_pages.error()));
  FlushList made;
  made.extents_ = std::move(*extents);
  made.with_pages_ = std::move(*with_pages);
  return made;
}

bool FlushList::note_unchanged(PageNumber page) {
  Extent& extent = extents_[page / kPages];
  std::uint16_t& looks = extent.looks[page % kPages];
  if (++looks < kLooks << extent.doublings[page % kPages]) return false;
  looks = 0;
  return true;
}

void FlushList::note_guarded(PageNumber page) {
  Extent& extent = extents_[page / kPages];
  clear(extent.listed, page);
  set(extent.guarded, page);
}

void FlushList::note_written(PageNumber page) {
  if (is_guarded(page)) be_patient(page);
  note_moved(page, true);
}

void FlushList::be_patient(PageNumber page) {
  std::uint8_t& doublings = extents_[page / kPages].doublings[page % kPages];
  doublings = std::min<std::uint8_t>(doublings + 1, kMostDoublings);
}

PageNumber FlushList::next(PageNumber from, PageNumber end) {
  while (from < end) {
    const PageNumber extent = from / kPages;
    const std::uint64_t extents = with_pages_[extent / 64] >> (extent % 64);
    if (extents == 0) {
      from = (extent / 64 + 1) * 64 * kPages;
      continue;
    }
    if ((extents & 1) == 0) {
      from = (extent + static_cast<unsigned>(std::countr_zero(extents))) * kPages;
      continue;
    }
    const Bits& bits = extents_[extent].listed;
    for (; from < (extent + 1) * kPages; from = (from / 64 + 1) * 64) {
      const std::uint64_t pages = bits[from % kPages / 64] >> (from % 64);
      if (pages != 0) return std::min(end, from + static_cast<unsigned>(std::countr_zero(pages)));
    }
    if (std::ranges::all_of(bits, [](std::uint64_t word) { return word == 0; })) {
      with_pages_[extent / 64] &= ~(std::uint64_t{1} << (extent % 64));
    }
  }
  return end;
}

}  // namespace farheap::pager
