// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs that are made up, as the sampler would see them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <vector>

#include "plan/planner.hpp"
#include "profile/page_sampler.hpp"

namespace farheap::plan {

using pager::PageNumber;
using profile::PageEvent;

inline constexpr std::uint64_t kPage = 4096;

struct Object {
  std::uint64_t first = 0, pages = 0;  // in pages
  [[nodiscard]] PageNumber at(double place) const {
    return first + std::min(static_cast<std::uint64_t>(place * static_cast<double>(pages)), pages - 1);
  }
};

// What the sampler sees of a program: sampled pages that are not among the last few that came.
class Seen {
 public:
  explicit Seen(std::uint32_t log2, std::uint32_t window = 8) {
    process_.name = "made up";
    process_.frames = {{}};
    process_.touches.one_in_log2 = log2;
    process_.touches.window = window;
  }
  void use(PageNumber page) {
    const bool is_new = known_.insert(page).second;
    process_.touches.pages += is_new ? 1 : 0;
    if (!profile::is_sampled(page, process_.touches.one_in_log2) || std::ranges::find(window_, page) != window_.end())
      return;
    process_.touches.words.push_back(profile::pack({page, is_new ? PageEvent::kCameFresh : PageEvent::kCame}));
    window_.push_back(page);
    if (window_.size() <= process_.touches.window) return;
    process_.touches.words.push_back(profile::pack({window_.front(), PageEvent::kLeft}));
    window_.pop_front();
  }
  // The innermost frame first; offsets in file 1.
  profile::SiteId site(const std::vector<std::uint64_t>& stack) {
    profile::SiteId inner = 0;
    for (const std::uint64_t offset : stack) {
      const profile::StackFrame frame{inner, {1, offset}};
      const auto found = std::find(process_.frames.begin() + 1, process_.frames.end(), frame);
      inner = static_cast<profile::SiteId>(found - process_.frames.begin());
      if (found == process_.frames.end()) process_.frames.push_back(frame);
    }
    return inner;
  }
  std::size_t born(profile::SiteId site, const Object& object) {
    process_.objects.push_back({site, object.first * kPage, object.pages * kPage, ++clock_, 0});
    return process_.objects.size() - 1;
  }
  void died(std::size_t object) { process_.objects[object].died = ++clock_; }
  [[nodiscard]] profile::Profile profile() const {
    profile::Profile all;
    all.files = {{}, {"/bin/made up", "00ff"}};
    all.processes = {process_};
    // As it is read from a file.
    const auto read = profile::read_profile(encode(all), "made up");
    EXPECT_TRUE(read && *read == all);
    return all;
  }
  [[nodiscard]] Result<Plan> plan() const {
    const auto of = profile();
    auto made = make_plan(of, "made up");
    if (!made) return fail(std::move(made.error()));
    const auto read = read_plan(encode(made->plan), "made up");
    EXPECT_TRUE(read && *read == made->plan) << "it cannot be read again";
    return std::move(made->plan);
  }

 private:
  profile::ProcessProfile process_;
  std::set<PageNumber> known_;
  std::deque<PageNumber> window_;
  std::uint64_t clock_ = 0;
};

inline Plan planned(const Seen& seen) {
  auto plan = seen.plan();
  EXPECT_TRUE(plan) << plan.error().message();
  return plan ? *plan : Plan{};
}

using UsePage = std::function<void(PageNumber)>;

inline void forwards(const Object& object, const UsePage& use) {
  for (std::uint64_t i = 0; i < object.pages; ++i) use(object.first + i);
}
inline void backwards(const Object& object, const UsePage& use) {
  for (std::uint64_t i = object.pages; i-- > 0;) use(object.first + i);
}
inline void beside(const std::vector<Object>& objects, const UsePage& use) {
  std::uint64_t steps = 0;
  for (const Object& object : objects) steps = std::max(steps, object.pages);
  for (std::uint64_t i = 0; i < steps; ++i) {
    for (const Object& object : objects) use(object.at(static_cast<double>(i) / static_cast<double>(steps)));
  }
}

}  // namespace farheap::plan
