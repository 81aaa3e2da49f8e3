// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/sampled_world.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <ranges>

#include "base/units.hpp"
#include "profile/page_trace.hpp"

namespace farheap::plan {

namespace {

using base::kPageBytes;

constexpr std::size_t kMostTouches = std::size_t{1} << 21;  // of one replay: less than a second
constexpr std::size_t kLatelyUses = 4, kSoonUses = 32;      // uses
constexpr double kMostGap = 4;  // as many pages behind a page of the sample as each speaks for, at the most

bool are_neighbours(std::uint32_t one, std::uint32_t other) { return one + 1 == other || other + 1 == one; }

}  // namespace

// The sample does not tell which uses write; first uses are taken to.
SampledWorld::SampledWorld(const profile::Touches& touches, double pages_for_one) {
  const auto tells_use = [](const profile::PageTraceEntry& entry) {
    using profile::PageEvent;
    return entry.event == PageEvent::kCame || entry.event == PageEvent::kCameFresh ||
           entry.event == PageEvent::kDropped;
  };
  for (const std::uint32_t word : touches.words) {
    const auto entry = profile::unpack_entry(word);
    if (entry && tells_use(*entry)) sampled_.push_back(static_cast<std::uint32_t>(entry->page));
  }
  std::ranges::sort(sampled_);
  sampled_.erase(std::ranges::unique(sampled_).begin(), sampled_.end());
  for (const std::uint32_t word : touches.words) {
    const auto entry = profile::unpack_entry(word);
    if (!entry || !tells_use(*entry)) continue;
    const std::uint32_t number = number_from(entry->page);
    switch (entry->event) {
      case profile::PageEvent::kCame: touches_.push_back({.page = number}); break;
      case profile::PageEvent::kCameFresh: touches_.push_back({.page = number, .write = true}); break;
      case profile::PageEvent::kDropped: touches_.push_back({.page = number, .drop = true}); break;
      default: break;
    }
  }
  if (touches_.empty()) return;
  in_passing_ = used_in_passing(touches_, sampled_.size());

  const double most = std::max(static_cast<double>(kMostTouches) / static_cast<double>(touches_.size()), 1.0);
  double each = std::clamp(pages_for_one, 1.0, most);
  count_copies(each, pages_for_one);
  // Pages that are used much may have many copies.
  if (const auto all = static_cast<double>(count_touches()); all > 2.0 * kMostTouches && each > 1) {
    each = std::max(each * kMostTouches / all, 1.0);
    count_copies(each, pages_for_one);
  }
  scale_ = pages_for_one / each;
  place_copies();
}

std::uint64_t SampledWorld::count_touches() const {
  std::uint64_t all = 0;
  for (const ReplayedTouch& touch : touches_) all += begins_[touch.page + 1] - begins_[touch.page];
  return all;
}

// One has as many as there are pages up to the next one of the sample, and all together have as many as there should
// be.
void SampledWorld::count_copies(double each, double pages_for_one) {
  const double most = each > 1 ? kMostGap * each : 1, scale = pages_for_one / each;
  const std::size_t last = sampled_.size() - 1;
  const double usual_gap =
      last != 0 ? static_cast<double>(sampled_[last] - sampled_[0]) / static_cast<double>(last) : 1;
  const auto gap_behind = [&](std::size_t page) {
    const double gap = page != last ? sampled_[page + 1] - sampled_[page] : usual_gap;
    return std::clamp(gap / scale, 1.0, most);
  };
  double all = 0, wanted = 0;
  for (std::size_t page = 0; page < sampled_.size(); ++page) {
    all += in_passing_[page] ? gap_behind(page) : 0;
    wanted += in_passing_[page] ? each : 0;
  }
  double passed = 0, copies = 0;
  begins_.assign(1, 0);
  for (std::size_t page = 0; page < sampled_.size(); ++page) {
    double count = std::round(each);
    if (in_passing_[page]) {
      passed += gap_behind(page) / all * wanted;
      count = std::clamp(std::round(passed - copies), 1.0, most);
      copies += count;
    }
    begins_.push_back(begins_.back() + static_cast<std::uint32_t>(count));
  }
}

void SampledWorld::place_copies() {
  places_.resize(begins_.back());
  std::vector<std::uint32_t> scattered;
  std::uint32_t next = 0;
  for (std::size_t page = 0; page < sampled_.size(); ++page) {
    for (std::uint32_t copy = begins_[page]; copy < begins_[page + 1]; ++copy) {
      if (in_passing_[page])
        places_[copy] = next++;
      else
        scattered.push_back(copy);
    }
  }
  std::shuffle(scattered.begin(), scattered.end(), std::mt19937(1));
  for (const std::uint32_t copy : scattered) places_[copy] = next++;
}

// The number of the first sampled page there or behind.
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
    passing[page] += std::any_of(now - static_cast<std::ptrdiff_t>(std::min(i, kLatelyUses)), now,
                                 [&](const ReplayedTouch& one) { return are_neighbours(one.page, page); })
                         ? 1
                         : 0;
  }
  std::vector<bool> result(pages);
  for (std::size_t page = 0; page < pages; ++page) result[page] = 2 * passing[page] >= all[page];
  return result;
}

std::vector<ReplayedTouch> SampledWorld::touches() const {
  struct Timed {
    double time;
    ReplayedTouch touch;
  };
  const auto passing_at = [&](std::size_t use) -> Passing {
    const std::uint32_t page = touches_[use].page;
    for (std::size_t i = use + 1; i < std::min(use + 1 + kSoonUses, touches_.size()); ++i) {
      if (are_neighbours(page, touches_[i].page)) return {static_cast<double>(i - use), touches_[i].page < page};
    }
    return {};
  };
  std::vector<Timed> all;
  for (std::size_t i = 0; i < touches_.size(); ++i) {
    ReplayedTouch one = touches_[i];
    const std::uint32_t first = begins_[one.page], count = begins_[one.page + 1] - first;
    const Passing passing = in_passing_[one.page] && !one.drop ? passing_at(i) : Passing{};
    for (std::uint32_t copy = 0; copy < count; ++copy) {
      one.page = places_[first + (passing.backward ? count - 1 - copy : copy)];
      all.push_back({static_cast<double>(i) + passing.uses * copy / count, one});
    }
  }
  std::ranges::stable_sort(all, {}, &Timed::time);
  std::vector<ReplayedTouch> touches;
  touches.reserve(all.size());
  for (const Timed& one : all) touches.push_back(one.touch);
  return touches;
}

std::vector<LiveObject> SampledWorld::places_of(std::span<const LiveObject> objects) const {
  std::vector<LiveObject> found;
  for (const LiveObject& object : objects) {
    const LiveObject one = place_of(object);
    if (one.bytes != 0) found.push_back(one);
  }
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

std::shared_ptr<const pager::PageOrder> SampledWorld::order_of(const PlannedPhase& phase,
                                                               std::span<const LiveObject> objects) const {
  PlannedPhase smaller = phase;
  smaller.window_pages = static_cast<std::uint32_t>(std::lround(phase.window_pages / scale_));
  for (PlannedObject& object : smaller.objects) {
    for (PlannedUse& use : object.parts | std::views::join) {
      use.pages = static_cast<std::uint32_t>(std::lround(use.pages / scale_));
    }
  }
  const std::vector<LiveObject> places = places_of(objects);
  if (most_visits(smaller, places) > kMostVisits) return nullptr;
  return std::make_shared<const pager::PageOrder>(plan::order_of(smaller, places));
}

LiveObject SampledWorld::place_of(const LiveObject& object) const {
  const std::uint64_t first = place_of((object.first + kPageBytes - 1) / kPageBytes);
  const std::uint64_t end = place_of((object.first + object.bytes) / kPageBytes);
  return {object.object, first * kPageBytes, (end - std::min(first, end)) * kPageBytes};
}

// A page lies as far behind the last one of the sample before it that is used in passing as it does in the program.
// Pages before all of these have no place of their own.
std::uint64_t SampledWorld::place_of(std::uint64_t page) const {
  std::size_t behind = number_from(page + 1);
  while (behind > 0 && !in_passing_[behind - 1]) --behind;
  if (behind == 0) return 0;
  const std::size_t number = behind - 1;
  const double copies = begins_[number + 1] - begins_[number];
  const double gap = number + 1 < sampled_.size() ? sampled_[number + 1] - sampled_[number] : copies * scale_;
  const double offset = static_cast<double>(page - sampled_[number]) / gap;
  return places_[begins_[number]] + static_cast<std::uint64_t>(std::min(offset, 1.0) * copies);
}

}  // namespace farheap::plan
