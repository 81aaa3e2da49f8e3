// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Those who record how a program uses its pages stand around the pager, on its seams. The pager, and who sets it up,
// know this much of them; whoever makes the segment says who it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <farheap/result.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "pager/budget.hpp"
#include "pager/view.hpp"

namespace farheap::pager {

// Records every use. The pager must bring in one page a fault, for then each page that comes was used at that moment;
// and may keep few in view, because what is in view is used unseen.
//
// Thread-safety: as View, Backing and Budget; stop_in_child(), the only thread of a forked child.
class UseRecording {
 public:
  UseRecording() = default;
  UseRecording(const UseRecording&) = delete;
  UseRecording& operator=(const UseRecording&) = delete;
  virtual ~UseRecording() = default;

  // What the pager gets in place of those that the recording was made over.
  [[nodiscard]] virtual View& view() = 0;
  [[nodiscard]] virtual Backing& backing() = 0;
  [[nodiscard]] virtual Budget& budget() = 0;
  // The recording is the parent's.
  virtual void stop_in_child() = 0;
};
// Called when paging begins, of so many pages from `base` on. What it is made over outlives it.
using MakeUseRecording = std::function<Result<std::unique_ptr<UseRecording>>(
    const std::byte* base, std::uint64_t pages, View& view, Backing& backing, Budget& budget)>;

// Records the uses of a sample of the pages, between begin() and end(). Whoever pages takes those out of view that
// next_due() names, so that their next use is seen.
//
// Thread-safety: any thread of the runtime; threads of the program only while nothing leaves the view (Pager's Still):
// a handler may wait for its lock. It touches nothing that is paged.
class UseSampling {
 public:
  UseSampling() = default;
  UseSampling(const UseSampling&) = delete;
  UseSampling& operator=(const UseSampling&) = delete;
  virtual ~UseSampling() = default;

  // What the pager gets in place of the one that it was made over.
  [[nodiscard]] virtual View& view() = 0;
  // From now on it records, into a new file, as if no page had been used before.
  [[nodiscard]] virtual Status begin(const std::string& path) = 0;
  // From now on it does not, until it begins anew.
  virtual void end() = 0;
  // A forked child is not sampled: what it has from its parent was not seen to come.
  virtual void stop_in_child() = 0;
  // The next page whose turn it is to be taken out of view.
  [[nodiscard]] virtual std::optional<PageNumber> next_due() = 0;
  // It could not be taken out just now.
  virtual void not_now(PageNumber page) = 0;
};
// Called when paging begins, of so many pages. The view outlives it. kNoSpace without addresses.
using MakeUseSampling = std::function<Result<std::unique_ptr<UseSampling>>(std::uint64_t pages, View& view)>;

}  // namespace farheap::pager
