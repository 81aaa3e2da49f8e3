// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The first writes to pages that are guarded for the sake of flushes, told before they go on.
//
// Thread-safety: tell() may be called by any thread at any time: who holds the pager's mutex may write to a guarded
// page himself, on his stack, and whoever serves that must not wait for it. The rest with the pager's mutex.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <farheap/result.hpp>

#include "base/units.hpp"
#include "os/mapping.hpp"
#include "pager/view.hpp"

namespace farheap::pager {

class ToldWrites {
 public:
  // From now on they are told. Requires: it was not called before.
  [[nodiscard]] Status begin(std::uint64_t capacity_pages);
  // False: nothing is guarded for flushes, and nothing was done.
  [[nodiscard]] bool tell(PageNumber page) {
    if (!on_.load()) return false;
    pages_[page / 64].fetch_or(std::uint64_t{1} << (page % 64));
    extents_[page / kPages / 64].fetch_or(std::uint64_t{1} << (page / kPages % 64));
    return true;
  }
  [[nodiscard]] bool is_on() const { return on_.load(); }
  // Calls visit(page) for all that was told since the last call, before `end`.
  template <class Visit>
  void take(PageNumber end, const Visit& visit) {
    if (!is_on()) return;
    const PageNumber extents = (end + kPages - 1) / kPages;
    for (PageNumber word = 0; word * 64 < extents; ++word) {
      if (extents_[word].load(std::memory_order_relaxed) == 0) continue;
      for (std::uint64_t bits = extents_[word].exchange(0); bits != 0; bits &= bits - 1) {
        const PageNumber extent = word * 64 + static_cast<unsigned>(std::countr_zero(bits));
        for (PageNumber at = extent * kPages; at < (extent + 1) * kPages; at += 64) {
          for (std::uint64_t pages = pages_[at / 64].exchange(0); pages != 0; pages &= pages - 1) {
            visit(at + static_cast<unsigned>(std::countr_zero(pages)));
          }
        }
      }
    }
  }

 private:
  static constexpr std::uint32_t kPages = base::kPagesPerHugePage;
  using Bits = os::ReservedArray<std::atomic<std::uint64_t>>;
  Bits pages_;                    // a bit for each page
  Bits extents_;                  // a bit for each extent, set after those of its pages
  std::atomic<bool> on_ = false;  // set once, when the two are there
};

}  // namespace farheap::pager
