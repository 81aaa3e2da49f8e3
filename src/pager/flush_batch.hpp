// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pages that a flush looks at together: copies of them, and what it finds. One object for all flushes: what it has
// allocated once, it keeps.
//
// Thread-safety: the flush's own, which has what keeps pages from leaving the view (Still).
#pragma once

#include <span>
#include <vector>

#include "pager/page_table.hpp"
#include "pager/view.hpp"

namespace farheap::pager {

class FlushBatch {
 public:
  struct Page {
    PageNumber page;
    bool in_view;
    enum : std::uint8_t { kClean, kZero, kDirty } found;
    PageHash hash;
  };

  void clear() { pages_.clear(); }
  void add(PageNumber page, bool in_view) { pages_.push_back({page, in_view, Page::kClean, {}}); }
  [[nodiscard]] std::size_t size() const { return pages_.size(); }
  [[nodiscard]] std::span<const Page> pages() const { return pages_; }
  // The bytes of pages are in `buffer`, in their order, as those below.
  [[nodiscard]] static std::byte* place(std::byte* buffer, std::size_t at) { return buffer + at * base::kPageBytes; }

  // Copies what is in view; what is not has been copied.
  [[nodiscard]] Status copy_shown(const View& view, std::byte* buffer) const;
  // Every page is found zero or dirty.
  void look_at(const std::byte* buffer);
  // What the store has, as far as that is known, is clean. Requires: the pager's mutex.
  void compare(const PageTable& table);
  // What is to be written. Good until the next call.
  [[nodiscard]] std::span<const Backing::Write> writes(const std::byte* buffer, std::uint32_t most_pages);

 private:
  std::vector<Page> pages_;
  std::vector<Backing::Write> writes_;
};

}  // namespace farheap::pager
