// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/cut.hpp"

#include <cstring>

namespace farheap::pager {

std::uint64_t Cut::begin() {
  under_way_ = true;
  return changes_.cut([&](PageRun run) {
    table_.for_each_run(run.first, run.first + run.count, PageState::kPresent, 0,
                        [&](PageRun part) { view_.guard(part); });
  });
}

void Cut::save(PageNumber page) {
  auto bytes = std::make_unique<std::byte[]>(base::kPageBytes);
  std::memcpy(bytes.get(), view_.shown(page), base::kPageBytes);
  saved_.push_back({page, std::move(bytes)});
  changes_.note_taken(page);
}

std::optional<PageRun> Cut::copy_waiting(PageNumber from, PageNumber end, std::uint32_t most, std::byte* into) {
  const PageRun next = changes_.next_waiting(from, most);
  if (next.count == 0 || next.first >= end) return PageRun{};
  PageRun copied{next.first, 0};
  for (; copied.count < next.count; ++copied.count) {
    const PageNumber page = next.first + copied.count;
    const PageState state = table_.state(page);
    const std::byte* bytes = nullptr;
    if (state == PageState::kPresent) bytes = view_.shown(page);
    if (state == PageState::kProbation || state == PageState::kWriting) bytes = view_.staging(page);
    if (bytes == nullptr) break;  // between the two places
    std::memcpy(into + copied.count * base::kPageBytes, bytes, base::kPageBytes);
    changes_.note_taken(page);
  }
  if (copied.count == 0) return std::nullopt;
  return copied;
}

void Cut::end(bool done) {
  changes_.finish_commit(done);
  saved_.clear();
  under_way_ = false;
}

bool Cut::may_leave(const Block& block, BlockId id) const {
  if (!under_way_ && !keep_changes_) return true;
  for (PageNumber page = block.first; page < block.first + block.count; ++page) {
    if (table_.find(page) == nullptr || table_.find(page)->tag[page % kExtentPages] != id) continue;
    if (changes_.is_changed(page) || changes_.is_committing(page)) return false;
  }
  return true;
}

}  // namespace farheap::pager
