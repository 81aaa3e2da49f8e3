// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/sampled_world.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/units.hpp"
#include "pager/page_trace.hpp"

namespace farheap::plan {

namespace {

using base::kPageBytes;

constexpr std::size_t kMostTouches = std::size_t{1} << 21;  // of one replay: less than a second
constexpr std::size_t kLately = 4;                          // uses

bool are_neighbours(std::uint32_t one, std::uint32_t other) { return one + 1 == other || other + 1 == one; }

}  // namespace

// The sample does not tell which uses write; first uses are taken to.
SampledWorld::SampledWorld(const profile::Touches& touches, double pages_for_one) {
  for (const std::uint32_t word : touches.words) {
    if (const auto entry = pager::unpack_entry(word)) sampled_.push_back(static_cast<std::uint32_t>(entry->page));
  }
  std::ranges::sort(sampled_);
  sampled_.erase(std::ranges::unique(sampled_).begin(), sampled_.end());
  for (const std::uint32_t word : touches.words) {
    const auto entry = pager::unpack_entry(word);
    if (!entry) continue;
    const std::uint32_t number = number_from(entry->page);
    switch (entry->event) {
      case pager::PageEvent::kCame: touches_.push_back({.page = number}); break;
      case pager::PageEvent::kCameFresh: touches_.push_back({.page = number, .write = true}); break;
      case pager::PageEvent::kDropped: touches_.push_back({.page = number, .drop = true}); break;
      default: break;
    }
  }
  if (touches_.empty()) return;
  in_passing_ = used_in_passing(touches_, sampled_.size());

  const double most = std::max(static_cast<double>(kMostTouches) / static_cast<double>(touches_.size()), 1.0);
  each_ = static_cast<std::uint32_t>(std::lround(std::clamp(pages_for_one, 1.0, most)));
  scale_ = pages_for_one / each_;
  places_.resize(sampled_.size() * each_);
  std::vector<std::uint32_t> scattered;
  std::uint32_t next = 0;
  for (std::uint32_t page = 0; page < sampled_.size(); ++page) {
    for (std::uint32_t i = 0; i < each_; ++i) {
      const std::uint32_t copy = page * each_ + i;
      if (in_passing_[page])
        places_[copy] = next++;
      else
        scattered.push_back(copy);
    }
  }
  std::shuffle(scattered.begin(), scattered.end(), std::mt19937(1));
  for (const std::uint32_t copy : scattered) places_[copy] = next++;
}

// Of the first page there or behind.
std::uint32_t SampledWorld::number_from(std::uint64_t page) const {
  return static_cast<std::uint32_t>(std::ranges::lower_bound(sampled_, page) - sampled_.begin());
}

// A page is, if most of its uses follow a use of its neighbour in the sample. Then the program uses the pages between
// the two, too.
std::vector<bool> SampledWorld::used_in_passing(const std::vector<ReplayedTouch>& touches, std::size_t pages) {
  std::vector<std::uint32_t> all(pages), passing(pages);
  for (std::size_t i = 0; i < touches.size(); ++i) {
    const std::uint32_t page = touches[i].page;
    const auto now = touches.begin() + static_cast<std::ptrdiff_t>(i);
    ++all[page];
    passing[page] += std::any_of(now - static_cast<std::ptrdiff_t>(std::min(i, kLately)), now,
                                 [&](const ReplayedTouch& one) { return are_neighbours(one.page, page); })
                         ? 1
                         : 0;
  }
  std::vector<bool> result(pages);
  for (std::size_t page = 0; page < pages; ++page) result[page] = 2 * passing[page] >= all[page];
  return result;
}

std::vector<ReplayedTouch> SampledWorld::touches(const Round& again, unsigned times) const {
  std::vector<ReplayedTouch> sample = touches_;
  if (times != 0) {
    std::vector<ReplayedTouch> round;
    std::uint32_t now = 0;
    std::size_t end = 0;
    for (; end < touches_.size() && now < again.begin + again.length; ++end) {
      if (now >= again.begin) round.push_back(touches_[end]);
      now += touches_[end].drop ? 0 : 1;
    }
    sample.resize(end);
    for (unsigned i = 0; i < times; ++i) sample.insert(sample.end(), round.begin(), round.end());
  }
  struct Timed {
    double time;
    ReplayedTouch touch;
  };
  const auto passing_at = [&](std::size_t use) -> Passing {
    const std::uint32_t page = sample[use].page;
    for (std::size_t i = use + 1; i < std::min(use + 1 + 32, sample.size()); ++i) {
      if (are_neighbours(page, sample[i].page)) return {static_cast<double>(i - use), sample[i].page < page};
    }
    return {};
  };
  std::vector<Timed> all;
  all.reserve(sample.size() * each_);
  for (std::size_t i = 0; i < sample.size(); ++i) {
    ReplayedTouch one = sample[i];
    const std::uint32_t first = one.page * each_;
    const Passing passing = in_passing_[one.page] && !one.drop ? passing_at(i) : Passing{};
    for (std::uint32_t copy = 0; copy < each_; ++copy) {
      one.page = places_[first + (passing.backward ? each_ - 1 - copy : copy)];
      all.push_back({static_cast<double>(i) + passing.uses * copy / each_, one});
    }
  }
  std::ranges::stable_sort(all, {}, &Timed::time);
  std::vector<ReplayedTouch> touches;
  touches.reserve(all.size());
  for (const Timed& one : all) touches.push_back(one.touch);
  return touches;
}

LiveObject SampledWorld::place_of(const LiveObject& object) const {
  std::uint32_t first = number_from((object.first + kPageBytes - 1) / kPageBytes);
  std::uint32_t end = number_from((object.first + object.bytes) / kPageBytes);
  while (first < end && !in_passing_[first]) ++first;
  while (first < end && !in_passing_[end - 1]) --end;
  if (first >= end) return {object.object, 0, 0};
  const std::uint64_t from = places_[first * each_], to = std::uint64_t{places_[(end - 1) * each_]} + each_;
  return {object.object, from * kPageBytes, (to - from) * kPageBytes};
}

}  // namespace farheap::plan
