// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/regions.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "heap/size_classes.hpp"
#include "plan/region_names.hpp"
#include "plan/site_numbers.hpp"
#include "plan/touch_phases.hpp"

namespace farheap::plan {

namespace {

constexpr double kAlike = 3;               // hotness that differs by less is the same: figures are of a sample
constexpr double kLeastBytes = 512 << 10;  // of a region: less is a few sampled pages
constexpr std::uint64_t kLeastObjects = 8, kLeastTouches = 64;  // seen of a site, and of all: fewer tell nothing
constexpr std::size_t kMostSites = 512;  // of those that have most; the others are few pages each
constexpr double kLeastSaving = 0.2;
constexpr double kLeastOfSplit = 0.05;  // so much more has to be saved by a group's regions of phases
constexpr double kAlikePhases = 0.6;    // of the touches of sites that are used together

using ByPhase = std::vector<double>;

double sum_of(const ByPhase& all) { return std::accumulate(all.begin(), all.end(), 0.0); }

void add(ByPhase& to, const ByPhase& more, double times = 1) {
  to.resize(std::max(to.size(), more.size()));
  for (std::size_t i = 0; i < more.size(); ++i) to[i] += more[i] * times;
}

struct Group {
  std::vector<const SmallObjects*> sites;
  double bytes = 0, touches = 0;
  ByPhase in_phases;     // touches
  bool is_part = false;  // of a group that was split by phases

  explicit Group(const SmallObjects& one) : sites{&one}, bytes(one.bytes), touches(one.touches) {
    add(in_phases, one.in_phases, one.touches);
  }
  [[nodiscard]] double hotness() const { return touches / bytes; }
  void join(const Group& other) {
    sites.insert(sites.end(), other.sites.begin(), other.sites.end());
    bytes += other.bytes;
    touches += other.touches;
    add(in_phases, other.in_phases);
  }
};

// The share of touches that come in the same phases. Sites that nobody touches are like any other.
double alike(const Group& a, const Group& b) {
  const double all_a = sum_of(a.in_phases), all_b = sum_of(b.in_phases);
  if (!(all_a > 0 && all_b > 0)) return 1;
  double both = 0;
  for (std::size_t i = 0; i < a.in_phases.size(); ++i) {
    both += std::min(a.in_phases[i] / all_a, b.in_phases[i] / all_b);
  }
  return both;
}

void join(std::vector<Group>& groups, std::size_t at) {
  groups[at].join(groups[at + 1]);
  groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(at) + 1);
}

// How much hotter a group is than the next one; they are in this order.
double step_behind(const std::vector<Group>& groups, std::size_t at) {
  const double next = groups[at + 1].hotness();
  return next > 0 ? groups[at].hotness() / next : groups[at].hotness() > 0 ? HUGE_VAL : 1;
}

// Neighbours that are most alike first, and small ones with the neighbour that is more like them.
void join_alike(std::vector<Group>& groups) {
  while (groups.size() > 1) {
    std::size_t best = 0;
    double least = 0;
    for (std::size_t i = 0; i + 1 < groups.size(); ++i) {
      const bool is_small = groups[i].bytes < kLeastBytes || groups[i + 1].bytes < kLeastBytes;
      const double step = is_small ? 1 - 1 / step_behind(groups, i) : step_behind(groups, i);
      if (i != 0 && step >= least) continue;
      least = step;
      best = i;
    }
    if (least >= kAlike && groups.size() <= kMostRegions) return;
    join(groups, best);
  }
}

// The sites of which enough was seen, and then all others.
std::size_t sort_known_first(std::vector<SmallObjects>& sites) {
  const auto unknown = std::ranges::stable_partition(
      sites, [](const SmallObjects& one) { return one.bytes > 0 && one.seen_objects >= kLeastObjects; });
  const auto known = static_cast<std::size_t>(unknown.begin() - sites.begin());
  std::ranges::stable_sort(std::span(sites).first(known), std::ranges::greater{}, &SmallObjects::bytes);
  return std::min(known, kMostSites);
}

std::vector<Group> groups_of(std::span<const SmallObjects> sites) {
  std::vector<Group> groups;
  for (const SmallObjects& one : sites) groups.emplace_back(one);
  std::ranges::stable_sort(groups, std::ranges::greater{}, &Group::hotness);
  join_alike(groups);
  return groups;
}

// Memory that is as hot as a whole, and how many touches miss it while it is away.
struct Piece {
  double bytes = 0;
  ByPhase touches, missed;
};

// Of each size class what each group has of it.
using Pieces = std::map<unsigned, std::map<std::size_t, Piece>>;

// Sites that are not known lie with the coldest group, and count as hot as the hottest.
Pieces pieces_of(const std::vector<Group>& groups, std::span<const SmallObjects> unknown) {
  Pieces all;
  const auto put = [&](const SmallObjects& one, std::size_t group, double touches) {
    Piece& piece = all[one.size_class][group];
    piece.bytes += one.bytes;
    add(piece.touches, one.in_phases, touches);
    piece.missed = piece.touches;
  };
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (const SmallObjects* const one : groups[group].sites) put(*one, group, one->touches);
  }
  for (const SmallObjects& one : unknown) {
    if (!(one.bytes > 0)) continue;
    const bool is_known = one.seen_objects >= kLeastObjects;  // and left out, because there are so many
    put(one, groups.size() - 1, is_known ? one.touches : one.bytes * groups.front().hotness());
  }
  return all;
}

std::vector<Piece> sorted(const Pieces& all) {
  std::vector<Piece> pieces;
  for (const auto& [size_class, of_class] : all) {
    for (const auto& [group, piece] : of_class) pieces.push_back(piece);
  }
  return pieces;
}

std::vector<Piece> mixed(const Pieces& all) {
  std::vector<Piece> pieces;
  for (const auto& [size_class, of_class] : all) {
    Piece& whole = pieces.emplace_back();
    for (const auto& [group, piece] : of_class) {
      whole.bytes += piece.bytes;
      add(whole.touches, piece.touches);
      whole.missed.resize(piece.touches.size());
      for (std::size_t i = 0; i < piece.touches.size(); ++i) {
        whole.missed[i] = std::max(whole.missed[i], piece.touches[i]);
      }
    }
  }
  return pieces;
}

// Where the pieces that are hottest in a phase are kept in it.
double missed(std::vector<Piece> pieces, double room) {
  double sum = 0;
  for (std::size_t phase = 0; !pieces.empty() && phase < pieces.front().touches.size(); ++phase) {
    std::ranges::sort(pieces, std::ranges::greater{}, [&](const Piece& one) { return one.touches[phase] / one.bytes; });
    double left = room;
    for (const Piece& one : pieces) {
      const double kept = std::min(left, one.bytes);
      sum += one.missed[phase] * (1 - kept / one.bytes);
      left -= kept;
    }
  }
  return sum;
}

// The share of the misses of mixed objects; where `share` of what they take is there.
double saved(const Pieces& pieces, double bytes, double share) {
  const double before = missed(mixed(pieces), share * bytes);
  return before > 0 ? 1 - missed(sorted(pieces), share * bytes) / before : 0;
}

// Splits a group by phases. A part of a few pages joins the one that is most like it.
std::vector<Group> parts_of(const Group& group) {
  std::vector<Group> parts;
  const auto most_alike = [&](const Group& to) {
    return std::ranges::max_element(parts, {}, [&](const Group& one) { return &one == &to ? -1 : alike(one, to); });
  };
  std::vector<const SmallObjects*> sites = group.sites;
  std::ranges::stable_sort(sites, std::ranges::greater{}, &SmallObjects::touches);
  for (const SmallObjects* const site : sites) {
    const Group one(*site);
    const auto best = most_alike(one);
    if (best != parts.end() && alike(*best, one) >= kAlikePhases) {
      best->join(one);
    } else {
      parts.push_back(one);
    }
  }
  while (parts.size() > 1) {
    const auto least = std::ranges::min_element(parts, {}, &Group::bytes);
    if (least->bytes >= kLeastBytes) break;
    most_alike(*least)->join(*least);
    parts.erase(least);
  }
  return parts;
}

// Groups are in parts by phases where that saves more. Before and afterwards the hottest is the first.
std::vector<Group> split_by_phases(std::vector<Group> groups, std::span<const SmallObjects> unknown, double bytes) {
  const auto saved_by = [&](const std::vector<Group>& all) {
    const Pieces pieces = pieces_of(all, unknown);
    return (saved(pieces, bytes, 0.7) + saved(pieces, bytes, 0.5)) / 2;
  };
  const std::vector<Group> whole = groups;
  for (const Group& one : whole) {
    const std::vector<Group> parts = parts_of(one);
    if (parts.size() < 2 || groups.size() + parts.size() > kMostRegions + 1) continue;
    std::vector<Group> tried = groups;
    std::erase_if(tried, [&](const Group& other) { return other.sites.front() == one.sites.front(); });
    for (const Group& part : parts) tried.emplace_back(part).is_part = true;
    std::ranges::stable_sort(tried, std::ranges::greater{}, &Group::hotness);
    if (saved_by(tried) >= saved_by(groups) + kLeastOfSplit) groups = std::move(tried);
  }
  return groups;
}

// Sites of which it is not known when they were touched were touched as all are. And all phases count alike: how long
// one lasts in a run of other data is not known, and of the first ones a recording sees more.
void spread_over_phases(std::vector<SmallObjects>& sites) {
  ByPhase all;
  for (const SmallObjects& one : sites) add(all, one.in_phases, one.touches);
  const double touches = sum_of(all);
  const double each = touches / static_cast<double>(std::max<std::size_t>(all.size(), 1));
  for (SmallObjects& one : sites) {
    if (!(touches > 0)) {
      one.in_phases = {1};
      continue;
    }
    ByPhase of_site = one.in_phases.empty() ? all : one.in_phases;
    if (one.in_phases.empty()) {
      for (double& share : of_site) share /= touches;
    }
    for (std::size_t i = 0; i < all.size(); ++i) of_site[i] *= all[i] > 0 ? each / all[i] : 0;
    const double sum = sum_of(of_site);
    one.touches *= sum;
    for (double& share : of_site) share = sum > 0 ? share / sum : 1 / static_cast<double>(all.size());
    one.in_phases = std::move(of_site);
  }
}

std::uint32_t share_of(double part, double whole) {
  const double share = whole > 0 ? std::clamp(part / whole, 0.0, 1.0) : 0;
  return static_cast<std::uint32_t>(std::llround(share * kRegionShares));
}

}  // namespace

RegionChoice choose_regions(std::span<const SmallObjects> sites) {
  std::vector<SmallObjects> all(sites.begin(), sites.end());
  spread_over_phases(all);
  const std::size_t count = sort_known_first(all);
  const std::span<const SmallObjects> known(all.data(), count), unknown(all.data() + count, all.size() - count);
  double bytes = 0, touches = 0;
  std::uint64_t seen = 0;
  for (const SmallObjects& one : all) bytes += one.bytes;
  ByPhase in_phases;
  for (const SmallObjects& one : known) {
    touches += one.touches;
    add(in_phases, one.in_phases, one.touches);
    seen += std::min(one.seen_touches, kLeastTouches);
  }
  if (seen < kLeastTouches) return {};
  const std::vector<Group> groups = split_by_phases(groups_of(known), unknown, bytes);
  const Pieces pieces = pieces_of(groups, unknown);
  if (saved(pieces, bytes, 0.5) < kLeastSaving) return {};
  RegionChoice choice;
  choice.saving = {share_of(saved(pieces, bytes, 0.7), 1), share_of(saved(pieces, bytes, 0.5), 1)};
  for (const Group& group : groups) {
    if (&group == &groups.back() && !group.is_part) break;  // the coldest lies where all else does
    PlannedRegion& region = choice.regions.emplace_back();
    for (const SmallObjects* const one : group.sites) region.sites.push_back(one->site);
    region.bytes = static_cast<std::uint64_t>(std::min(group.bytes, 0x1p63));
    region.of_touches = share_of(group.touches, touches);
    region.of_bytes = share_of(group.bytes, bytes);
    for (std::size_t i = 0; in_phases.size() > 1 && i < in_phases.size(); ++i) {
      region.of_phases.push_back(share_of(group.in_phases[i], in_phases[i]));
    }
  }
  return choice;
}

void plan_regions(const profile::ProcessProfile& process, Plan& plan) {
  SiteNumbers numbers(process.frames);
  std::vector<SmallObjects> found;
  NumberOfSite number_of;
  for (const profile::SiteTotals& one : process.sites) {
    const double mean = one.objects > 0 ? static_cast<double>(one.allocated_bytes) / one.objects : HUGE_VAL;
    if (!(mean <= heap::kLargestSmall)) continue;
    number_of[one.site] = numbers.number_of(one.site);
    found.push_back({number_of[one.site],
                     heap::class_of(static_cast<std::size_t>(std::lround(mean))),
                     static_cast<double>(one.peak_bytes),
                     one.touches,
                     one.seen_objects,
                     one.seen_touches,
                     {}});
  }
  // Stacks that differ farther out than their names go are one site; its objects may have several sizes.
  std::ranges::sort(found, {}, [](const SmallObjects& one) { return std::pair(one.site, -one.bytes); });
  std::vector<SmallObjects> sites;
  for (const SmallObjects& one : found) {
    if (sites.empty() || sites.back().site != one.site) {
      sites.push_back(one);
    } else {
      sites.back().bytes += one.bytes;
      sites.back().touches += one.touches;
      sites.back().seen_objects += one.seen_objects;
      sites.back().seen_touches += one.seen_touches;
    }
  }
  const auto in_phases = phases_of_touches(process, number_of);
  for (SmallObjects& one : sites) {
    if (const auto found = in_phases.find(one.site); found != in_phases.end()) one.in_phases = found->second;
  }
  RegionChoice choice = choose_regions(sites);
  plan.regions = std::move(choice.regions);
  plan.region_saving = choice.saving;
  std::set<std::uint32_t> unknown;
  for (const SmallObjects& one : sites) {
    if (one.seen_objects < kLeastObjects) unknown.insert(one.site);
  }
  name_sites_of_regions(numbers.names(), [&](std::uint32_t site) { return !unknown.contains(site); }, plan);
}

}  // namespace farheap::plan
