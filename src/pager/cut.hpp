// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A commit under way: from the cut, where its pages are guarded as they are, until it is done. A page that is written
// to before the commit has taken it is saved first, as it was at the cut.
//
// Thread-safety: none of its own; the pager's mutex guards it.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "pager/changes.hpp"
#include "pager/page_table.hpp"
#include "pager/view.hpp"

namespace farheap::pager {

class Cut {
 public:
  // All must outlive it. `keep_changes`: what differs from the store never leaves memory, commit or not.
  Cut(View& view, const PageTable& table, Changes& changes, bool keep_changes)
      : view_(view), table_(table), changes_(changes), keep_changes_(keep_changes) {}

  struct Saved {
    PageNumber page;
    std::unique_ptr<std::byte[]> bytes;
  };

  // Returns the number of pages. Requires: nothing is on its way, and every fault waits.
  std::uint64_t begin();
  [[nodiscard]] bool is_under_way() const { return under_way_; }
  // Before a write to a page in view that the commit waits for.
  void save(PageNumber page);
  // Copies the next waiting pages that lie in a row, at most so many. Count 0: there are none before `end`. Nothing:
  // the next one is between two places, ask again. Requires: `from` and `end` are in one extent.
  [[nodiscard]] std::optional<PageRun> copy_waiting(PageNumber from, PageNumber end, std::uint32_t most,
                                                    std::byte* into);
  // Requires: none is waiting any more, so no more of them will come.
  [[nodiscard]] std::vector<Saved> take_saved() { return std::exchange(saved_, {}); }
  // Not done: its pages count as changed again.
  void end(bool done);

  // A page that the commit takes stays until that is done: if it fails, nothing else has the page. So does a page that
  // was changed after the cut: by leaving it would come into the commit. And pages that are never written have no other
  // place.
  [[nodiscard]] bool may_leave(const Block& block, BlockId id) const;

  // Nothing is committed from here.
  void forbid_writes(bool on) { writes_forbidden_ = on; }
  [[nodiscard]] bool are_writes_forbidden() const { return writes_forbidden_; }

 private:
  View& view_;
  const PageTable& table_;
  Changes& changes_;
  const bool keep_changes_;
  bool under_way_ = false;
  bool writes_forbidden_ = false;
  std::vector<Saved> saved_;
};

}  // namespace farheap::pager
