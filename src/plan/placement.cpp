// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/placement.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <queue>
#include <tuple>

#include "base/units.hpp"

namespace farheap::plan {

namespace {

constexpr std::uint64_t kPage = base::kPageBytes;
constexpr std::uint64_t kMostPages = std::numeric_limits<std::uint64_t>::max() / kPage;

constexpr std::uint64_t kLeastPartsOfRoom = 512;

// Accesses are spread evenly over a site's memory: all of its parts have the same number a byte.
struct Part {
  KeptPart at;
  double density = 0;
  double priority = 0;
};

// accesses^alpha / bytes^beta, so that equal exponents give parts of a site the very same priority.
double priority_of(double density, std::uint64_t bytes, const PriorityModel& model) {
  return std::pow(density, model.alpha) * std::pow(static_cast<double>(bytes), model.alpha - model.beta);
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
  return priority_of(static_cast<double>(accesses) / static_cast<double>(bytes), bytes, model);
}

std::vector<KeptPart> choose_kept(std::span<const SiteUse> sites, std::uint64_t room_bytes,
                                  const PriorityModel& model) {
  std::priority_queue<Part, std::vector<Part>, IsLess> waiting;
  const auto wait = [&waiting, &model](KeptPart at, double density) {
    waiting.push({at, density, priority_of(density, at.bytes, model)});
  };
  for (const SiteUse& use : sites) {
    const std::uint64_t pages = use.bytes / kPage + (use.bytes % kPage != 0);
    const std::uint64_t bytes = std::min(pages, kMostPages) * kPage;
    if (bytes != 0 && use.accesses != 0)
      wait({use.site, 0, bytes}, static_cast<double>(use.accesses) / static_cast<double>(bytes));
  }
  std::vector<KeptPart> kept;
  std::uint64_t room = room_bytes / kPage * kPage;
  const std::uint64_t least_part = room / kLeastPartsOfRoom;
  while (room != 0 && !waiting.empty()) {
    const Part best = waiting.top();
    waiting.pop();
    if (best.at.bytes <= room) {
      room -= best.at.bytes;
      kept.push_back(best.at);
      continue;
    }
    if (best.at.bytes < least_part) {
      kept.push_back({best.at.site, best.at.first, room});
      break;
    }
    // It has two pages at the least: one page fits.
    const std::uint64_t half = best.at.bytes / kPage / 2 * kPage;
    wait({best.at.site, best.at.first, half}, best.density);
    wait({best.at.site, best.at.first + half, best.at.bytes - half}, best.density);
  }
  join_neighbours(kept);
  return kept;
}

}  // namespace farheap::plan
