// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/pager_curve.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/units.hpp"
#include "pager/page_trace.hpp"
#include "plan/replay.hpp"

namespace farheap::plan {

namespace {

constexpr std::size_t kMostTouches = std::size_t{1} << 21;  // of one replay: less than a second

// The sample's uses. Its pages have numbers in the order of their addresses. The sample does not tell which uses write;
// first uses are taken to.
struct Seen {
  std::vector<ReplayedTouch> touches;
  std::uint32_t pages = 0;
};
Seen seen_in(const profile::Touches& touches) {
  std::vector<std::uint32_t> pages;
  for (const std::uint32_t word : touches.words) {
    if (const auto entry = pager::unpack_entry(word)) pages.push_back(static_cast<std::uint32_t>(entry->page));
  }
  std::ranges::sort(pages);
  pages.erase(std::ranges::unique(pages).begin(), pages.end());
  Seen seen;
  seen.pages = static_cast<std::uint32_t>(pages.size());
  for (const std::uint32_t word : touches.words) {
    const auto entry = pager::unpack_entry(word);
    if (!entry) continue;
    const auto number = static_cast<std::uint32_t>(std::ranges::lower_bound(pages, entry->page) - pages.begin());
    switch (entry->event) {
      case pager::PageEvent::kCame: seen.touches.push_back({.page = number}); break;
      case pager::PageEvent::kCameFresh: seen.touches.push_back({.page = number, .write = true}); break;
      case pager::PageEvent::kDropped: seen.touches.push_back({.page = number, .drop = true}); break;
      default: break;
    }
  }
  return seen;
}

// A page is used in passing if most of its uses follow a use of its neighbour in the sample. Then the program uses the
// pages between the two, too.
std::vector<bool> used_in_passing(const Seen& seen) {
  constexpr std::size_t kLately = 4;
  std::vector<std::uint32_t> all(seen.pages), passing(seen.pages);
  for (std::size_t i = 0; i < seen.touches.size(); ++i) {
    const std::uint32_t page = seen.touches[i].page;
    const auto is_neighbour = [page](const ReplayedTouch& one) { return one.page + 1 == page || one.page == page + 1; };
    const auto now = seen.touches.begin() + static_cast<std::ptrdiff_t>(i);
    ++all[page];
    passing[page] += std::any_of(now - static_cast<std::ptrdiff_t>(std::min(i, kLately)), now, is_neighbour) ? 1 : 0;
  }
  std::vector<bool> result(seen.pages);
  for (std::uint32_t page = 0; page < seen.pages; ++page) result[page] = 2 * passing[page] >= all[page];
  return result;
}

// A world in which each page of the sample is `each` pages: those that lie behind it where they are used in passing,
// and otherwise some that lie anywhere among the others of that kind.
std::vector<ReplayedTouch> multiplied(const Seen& seen, std::uint32_t each) {
  const std::vector<bool> in_passing = used_in_passing(seen);
  std::vector<std::uint32_t> places(std::size_t{seen.pages} * each), scattered;
  std::uint32_t next = 0;
  for (std::uint32_t page = 0; page < seen.pages; ++page) {
    for (std::uint32_t i = 0; i < each; ++i) {
      const std::uint32_t copy = page * each + i;
      if (in_passing[page])
        places[copy] = next++;
      else
        scattered.push_back(copy);
    }
  }
  std::shuffle(scattered.begin(), scattered.end(), std::mt19937(1));
  for (const std::uint32_t copy : scattered) places[copy] = next++;
  std::vector<ReplayedTouch> touches;
  touches.reserve(seen.touches.size() * each);
  for (ReplayedTouch one : seen.touches) {
    const std::uint32_t first = one.page * each;
    for (std::uint32_t i = 0; i < each; ++i) {
      one.page = places[first + i];
      touches.push_back(one);
    }
  }
  return touches;
}

}  // namespace

std::vector<double> pager_reads(const profile::Touches& touches, const MemoryCurve& curve) {
  const Seen seen = seen_in(touches);
  if (seen.touches.empty()) return std::vector<double>(curve.points.size());
  // In a world that is as much smaller as the replay would be too long.
  const double most_each = std::max(static_cast<double>(kMostTouches) / static_cast<double>(seen.touches.size()), 1.0);
  const auto each = static_cast<std::uint32_t>(std::lround(std::clamp(curve.pages_for_one, 1.0, most_each)));
  const double scale = curve.pages_for_one / each;
  const std::vector<ReplayedTouch> world = multiplied(seen, each);
  std::vector<double> reads;
  for (const MemoryPoint& point : curve.points) {
    if (point.memory_bytes >= curve.whole_bytes) {  // then nothing is paged
      reads.push_back(0);
      continue;
    }
    const double memory = static_cast<double>(point.memory_bytes) / base::kPageBytes / scale;
    const ReplayCounts counts =
        replay(world, std::uint64_t{seen.pages} * each, static_cast<std::uint64_t>(std::llround(memory)));
    reads.push_back(static_cast<double>(counts.pages_read) * scale);
  }
  return reads;
}

}  // namespace farheap::plan
