// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/changes.hpp"

#include <algorithm>
#include <bit>

namespace farheap::pager {

Result<Changes> Changes::make(std::uint64_t capacity_pages) {
  auto bits = os::ReservedArray<ExtentBits>::make((capacity_pages + kExtentPages - 1) / kExtentPages);
  if (!bits) return fail(std::move(bits.error()));
  Changes made;
  made.bits_ = std::move(*bits);
  return made;
}

void Changes::list(std::uint32_t extent) {
  if (std::exchange(bits_[extent].listed, 1) == 0) changed_extents_.push_back(extent);
}

void Changes::note_changed(PageRun run) {
  if (!tracked() || run.count == 0) return;
  for (std::uint32_t i = 0; i < run.count; ++i) set(bits_[(run.first + i) / kExtentPages].changed, run.first + i);
  for (PageNumber at = run.first / kExtentPages; at <= (run.first + run.count - 1) / kExtentPages; ++at) {
    list(static_cast<std::uint32_t>(at));
  }
}

void Changes::note_discarded(PageRun run) {
  for (std::uint32_t i = 0; tracked() && i < run.count; ++i) {
    ExtentBits& bits = bits_[(run.first + i) / kExtentPages];
    clear(bits.changed, run.first + i);
    clear(bits.committing, run.first + i);  // a commit that fails does not bring it back
  }
}

bool Changes::any_changed() const {
  return std::ranges::any_of(changed_extents_, [&](std::uint32_t extent) {
    return std::ranges::any_of(bits_[extent].changed, [](std::uint64_t word) { return word != 0; });
  });
}

PageRun Changes::next_run(const Bits& bits, PageNumber from, std::uint32_t most) {
  const PageNumber end = (from / kExtentPages + 1) * kExtentPages;
  while (from < end) {
    const std::uint64_t rest = bits[from % kExtentPages / 64] >> (from % 64);
    if (rest != 0) {
      from += static_cast<unsigned>(std::countr_zero(rest));
      break;
    }
    from = (from / 64 + 1) * 64;
  }
  PageRun run{from, 0};
  while (run.count < most && run.first + run.count < end && has(bits, run.first + run.count)) ++run.count;
  return run;
}

PageRun Changes::next_waiting(PageNumber from, std::uint32_t most) const {
  return next_run(of(from).waiting, from, most);
}

void Changes::finish_commit(bool done) {
  for (const std::uint32_t extent : committing_) {
    ExtentBits& bits = bits_[extent];
    if (!done) {
      for (std::size_t i = 0; i < kWords; ++i) bits.changed[i] |= bits.committing[i];
      list(extent);
    }
    bits.waiting = bits.committing = {};
  }
  committing_.clear();
}

}  // namespace farheap::pager
