// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A view around another one, which does the work: for those that look at some of what is done to pages.
//
// Thread-safety: as View.
#pragma once

#include "pager/view.hpp"

namespace farheap::pager {

class ViewAround : public View {
 public:
  explicit ViewAround(View& inner) : view_(inner) {}
  void guard(PageRun run) override { view_.guard(run); }
  void release(PageRun run) override { view_.release(run); }
  [[nodiscard]] const std::byte* shown(PageNumber page) const override { return view_.shown(page); }
  [[nodiscard]] bool read_shown(PageRun run, std::byte* into) const override { return view_.read_shown(run, into); }
  void stage(PageRun run, const std::byte* bytes) override { view_.stage(run, bytes); }
  [[nodiscard]] const std::byte* staging(PageNumber page) const override { return view_.staging(page); }
  void drop_staging(std::span<const PageRun> runs) override { view_.drop_staging(runs); }
  void mend(PageNumber page) override { view_.mend(page); }
  void wake(PageRun run) override { view_.wake(run); }

 protected:
  View& view_;
};

}  // namespace farheap::pager
