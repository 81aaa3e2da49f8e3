// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/placement.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <queue>
#include <tuple>

#include "base/units.hpp"

namespace farheap::plan {

namespace {

constexpr std::uint64_t kPage = base::kPageBytes;

// Accesses are spread evenly over a site's memory, so a half has half of them; they need not be whole.
struct Part {
  KeptPart at;
  double accesses = 0;
  double priority = 0;
};

double priority_of(double accesses, std::uint64_t bytes, const PriorityModel& model) {
  return std::pow(accesses, model.alpha) / std::pow(static_cast<double>(bytes), model.beta);
}

struct IsLess {
  bool operator()(const Part& one, const Part& other) const {
    return std::tuple(one.priority, other.at.site, other.at.first) <
           std::tuple(other.priority, one.at.site, one.at.first);
  }
};

void join_neighbours(std::vector<KeptPart>& kept) {
  std::ranges::sort(kept, [](const KeptPart& one, const KeptPart& other) {
    return std::tuple(one.site, one.first) < std::tuple(other.site, other.first);
  });
  std::size_t end = 0;
  for (const KeptPart& part : kept) {
    if (end != 0 && kept[end - 1].site == part.site && kept[end - 1].first + kept[end - 1].bytes == part.first) {
      kept[end - 1].bytes += part.bytes;
    } else {
      kept[end++] = part;
    }
  }
  kept.resize(end);
}

}  // namespace

double priority(std::uint64_t accesses, std::uint64_t bytes, const PriorityModel& model) {
  assert(bytes > 0);
  return priority_of(static_cast<double>(accesses), bytes, model);
}

std::vector<KeptPart> choose_kept(std::span<const SiteUse> sites, std::uint64_t room_bytes,
                                  const PriorityModel& model) {
  std::priority_queue<Part, std::vector<Part>, IsLess> waiting;
  const auto wait = [&waiting, &model](KeptPart at, double accesses) {
    waiting.push({at, accesses, priority_of(accesses, at.bytes, model)});
  };
  for (const SiteUse& use : sites) {
    const std::uint64_t bytes = (use.bytes + kPage - 1) / kPage * kPage;
    if (bytes != 0 && use.accesses != 0) wait({use.site, 0, bytes}, static_cast<double>(use.accesses));
  }
  std::vector<KeptPart> kept;
  std::uint64_t room = room_bytes / kPage * kPage;
  while (room != 0 && !waiting.empty()) {
    const Part best = waiting.top();
    waiting.pop();
    if (best.at.bytes <= room) {
      room -= best.at.bytes;
      kept.push_back(best.at);
      continue;
    }
    // It has two pages at the least: one page fits.
    const std::uint64_t half = best.at.bytes / kPage / 2 * kPage;
    const double share = static_cast<double>(half) / static_cast<double>(best.at.bytes);
    wait({best.at.site, best.at.first, half}, best.accesses * share);
    wait({best.at.site, best.at.first + half, best.at.bytes - half}, best.accesses * (1 - share));
  }
  join_neighbours(kept);
  return kept;
}

}  // namespace farheap::plan
