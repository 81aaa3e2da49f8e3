// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/earlier.hpp"

namespace farheap::pager {

void Earlier::learn_extent(PageNumber page) {
  static_assert(kExtentPages == Backing::Stored().size());
  const PageNumber first = page / kExtentPages * kExtentPages;
  const auto stored = backing_.stored_from(first);
  if (!stored) return lost_(stored.error());
  if (stored->none()) return;
  (void)table_.extent(page);
  for (std::uint32_t i = 0; i < kExtentPages; ++i) {
    if (stored->test(i)) table_.set_state(first + i, PageState::kStored);
  }
}

}  // namespace farheap::pager
