// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/flush_batch.hpp"

#include "pager/leaving.hpp"

namespace farheap::pager {

namespace {
// The store has no page that is all zeros; this is known of such a page.
PageHash hash_of_zeros() {
  alignas(base::kPageBytes) static const std::byte zeros[base::kPageBytes]{};
  static const PageHash hash = hash_page(zeros);
  return hash;
}
}  // namespace

Status FlushBatch::copy_shown(const View& view, std::byte* buffer) const {
  for (std::size_t i = 0; i < pages_.size();) {
    if (!pages_[i].in_view) {
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    while (end < pages_.size() && pages_[end].in_view && pages_[end].page == pages_[end - 1].page + 1) ++end;
    const PageRun run{pages_[i].page, static_cast<std::uint32_t>(end - i)};
    if (!view.read_shown(run, place(buffer, i))) {
      return fail(ErrorCode::kUnavailable, "cannot flush the heap", "page " + std::to_string(run.first),
                  "the kernel does not let its memory be read", "do not flush while parts of the heap are mapped over");
    }
    i = end;
  }
  return {};
}

void FlushBatch::look_at(const std::byte* buffer) {
  for (Page& one : pages_) {
    const bool is_zero = is_zero_page(buffer);
    one.found = is_zero ? Page::kZero : Page::kDirty;
    one.hash = is_zero ? hash_of_zeros() : hash_page(buffer);
    buffer += base::kPageBytes;
  }
}

void FlushBatch::compare(const PageTable& table) {
  for (Page& one : pages_) {
    const Block& block = table.block(table.find(one.page)->tag[one.page % kExtentPages]);
    if (block.known.is_stored(static_cast<std::uint32_t>(one.page - block.first), one.hash)) one.found = Page::kClean;
  }
}

std::span<const Backing::Write> FlushBatch::writes(const std::byte* buffer, std::uint32_t most_pages) {
  writes_.clear();
  for (const Page& one : pages_) {
    if (one.found == Page::kDirty) add_page(writes_, one.page, buffer, most_pages);
    buffer += base::kPageBytes;
  }
  return writes_;
}

}  // namespace farheap::pager
