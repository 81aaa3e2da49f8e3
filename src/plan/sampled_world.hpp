// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All uses of a program's pages, as far as those of a sample tell them: a world in which each page of the sample is
// several. A page is used in passing, if it is used after its neighbours in the sample. It stands for the pages up to
// the next one, which are used between it and that one. Other pages stand for some that lie anywhere among others of
// their kind, and are used at one time.
//
// Thread-safety: plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pager/page_order.hpp"
#include "plan/plan.hpp"
#include "plan/planned_order.hpp"
#include "plan/replay.hpp"
#include "profile/profile.hpp"

namespace farheap::plan {

class SampledWorld {
 public:
  // Each page of the sample speaks for so many. The world may be a smaller one, so that a replay of it ends soon.
  SampledWorld(const profile::Touches& touches, double pages_for_one);

  // In their order.
  [[nodiscard]] std::vector<ReplayedTouch> touches() const;
  // The places of objects, as far as their pages are used in passing, each once. Objects that have none are left out.
  [[nodiscard]] std::vector<LiveObject> places_of(std::span<const LiveObject> objects) const;
  // A phase's order, for its objects as they were in the recorded run. nullptr: it is too long to be followed.
  [[nodiscard]] std::shared_ptr<const pager::PageOrder> order_of(const PlannedPhase& phase,
                                                                 std::span<const LiveObject> objects) const;

  [[nodiscard]] std::uint64_t pages() const { return places_.size(); }
  [[nodiscard]] bool is_empty() const { return touches_.empty(); }
  // Each of its pages speaks for so many of the program's.
  [[nodiscard]] double scale() const { return scale_; }
  // For a program that takes `use` for each of its own pages' uses, and so on: for those of this world.
  [[nodiscard]] ReplayClock clock(const ReplayClock& real) const {
    return {real.use * scale_, real.page * scale_, real.request * scale_};
  }

 private:
  struct Passing {
    double uses = 1;  // until the neighbour's
    bool backward = false;
  };
  [[nodiscard]] static std::vector<bool> used_in_passing(const std::vector<ReplayedTouch>& touches, std::size_t pages);
  [[nodiscard]] std::uint32_t number_from(std::uint64_t page) const;
  void count_copies(double each, double pages_for_one);
  [[nodiscard]] std::uint64_t count_touches() const;
  void place_copies();
  [[nodiscard]] std::uint64_t place_of(std::uint64_t page) const;
  [[nodiscard]] LiveObject place_of(const LiveObject& object) const;

  std::vector<ReplayedTouch> touches_;  // of the sample; its pages have numbers in the order of their addresses
  std::vector<std::uint32_t> sampled_;  // pages, by number; they ascend
  std::vector<bool> in_passing_;        // by number
  double scale_ = 1;
  std::vector<std::uint32_t> begins_;  // by number: of its copies, among places_; and one more
  std::vector<std::uint32_t> places_;
};

}  // namespace farheap::plan
