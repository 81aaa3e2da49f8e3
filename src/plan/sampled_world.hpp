// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All uses of a program's pages, as far as those of a sample tell them: a world in which each page of the sample is
// several. Those lie behind it where it is used in passing, after its neighbours in the sample, and are used until the
// next one is. The others lie anywhere among the others of that kind, and are used at one time.
//
// Thread-safety: plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/planned_order.hpp"
#include "plan/replay.hpp"
#include "plan/round.hpp"
#include "profile/profile.hpp"

namespace farheap::plan {

class SampledWorld {
 public:
  // Of a sample each of whose pages speaks for so many. So that a replay of it ends soon, it may be a smaller one.
  SampledWorld(const profile::Touches& touches, double pages_for_one);

  // In their order. Time is counted in uses of sampled pages, as in plans: uses from the end of `again` on are left
  // out, and those in it come `times` more, if that is not 0.
  [[nodiscard]] std::vector<ReplayedTouch> touches(const Round& again = {}, unsigned times = 0) const;
  // Where an object is, as far as its pages are used in passing; no bytes: nowhere.
  [[nodiscard]] LiveObject place_of(const LiveObject& object) const;

  [[nodiscard]] std::uint64_t pages() const { return places_.size(); }
  [[nodiscard]] bool is_empty() const { return touches_.empty(); }
  // Each of its pages speaks for so many of the program's.
  [[nodiscard]] double scale() const { return scale_; }

 private:
  struct Passing {
    double uses = 1;  // until the neighbour's
    bool backward = false;
  };
  [[nodiscard]] static std::vector<bool> used_in_passing(const std::vector<ReplayedTouch>& touches, std::size_t pages);
  [[nodiscard]] std::uint32_t number_from(std::uint64_t page) const;

  std::vector<ReplayedTouch> touches_;  // of the sample; its pages have numbers in the order of their addresses
  std::vector<std::uint32_t> sampled_;  // pages, by number; they ascend
  std::vector<bool> in_passing_;        // by number
  std::uint32_t each_ = 1;
  double scale_ = 1;
  std::vector<std::uint32_t> places_;
};

}  // namespace farheap::plan
