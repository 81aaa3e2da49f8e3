// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which pages are in the store from an earlier run. The backing is asked once for each extent that holds anything, with
// the pager's mutex: a block of its map may have to be read. Where nothing is, nothing is written down: who frees what
// was never touched leaves no trace.
//
// Thread-safety: none of its own; the pager's mutex guards it.
#pragma once

#include <farheap/result.hpp>
#include <functional>

#include "pager/page_table.hpp"
#include "pager/view.hpp"

namespace farheap::pager {

class Earlier {
 public:
  // All three must outlive it. `possible`: or there is no earlier run, and nothing is ever asked.
  Earlier(PageTable& table, Backing& backing, const std::function<void(const Error&)>& lost, bool possible)
      : table_(table), backing_(backing), lost_(lost), possible_(possible) {}

  [[nodiscard]] bool is_unknown(PageNumber page) const { return possible_ && table_.find(page) == nullptr; }
  // Before the state of a page is looked at.
  void learn(PageNumber page) {
    if (is_unknown(page)) learn_extent(page);
  }
  void learn_run(PageNumber from, PageNumber end) {
    for (PageNumber page = from / kExtentPages * kExtentPages; page < end; page += kExtentPages) learn(page);
  }

 private:
  void learn_extent(PageNumber page);

  PageTable& table_;
  Backing& backing_;
  const std::function<void(const Error&)>& lost_;
  bool possible_;
};

}  // namespace farheap::pager
