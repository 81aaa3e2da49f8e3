// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/regions.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "heap/size_classes.hpp"
#include "plan/site_numbers.hpp"

namespace farheap::plan {

namespace {

constexpr double kAlike = 3;               // hotness that differs by less is the same: figures are of a sample
constexpr double kLeastBytes = 512 << 10;  // of a region: less is a few sampled pages
constexpr std::uint64_t kLeastObjects = 8, kLeastTouches = 64;  // seen of a site, and of all: fewer tell nothing
constexpr std::size_t kMostSites = 512;  // of those that have most; the others are few pages each
constexpr double kLeastSaving = 0.2;

struct Group {
  std::vector<const SmallObjects*> sites;
  double bytes = 0, touches = 0;
  [[nodiscard]] double hotness() const { return touches / bytes; }
};

void join(std::vector<Group>& groups, std::size_t at) {
  Group& into = groups[at];
  const Group& from = groups[at + 1];
  into.sites.insert(into.sites.end(), from.sites.begin(), from.sites.end());
  into.bytes += from.bytes;
  into.touches += from.touches;
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
  for (const SmallObjects& one : sites) groups.push_back({{&one}, one.bytes, one.touches});
  std::ranges::stable_sort(groups, std::ranges::greater{}, &Group::hotness);
  join_alike(groups);
  return groups;
}

// Memory that is as hot as a whole, and how many touches miss it while it is away.
struct Piece {
  double bytes = 0, touches = 0, missed = 0;
};

// Of each size class what each group has of it.
using Pieces = std::map<unsigned, std::map<std::size_t, Piece>>;

// What is not known lies with the coldest, and is as hot as the hottest.
Pieces pieces_of(const std::vector<Group>& groups, std::span<const SmallObjects> unknown) {
  Pieces all;
  const auto add = [&](const SmallObjects& one, std::size_t group, double touches) {
    Piece& piece = all[one.size_class][group];
    piece.bytes += one.bytes;
    piece.touches += touches;
    piece.missed = piece.touches;
  };
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (const SmallObjects* const one : groups[group].sites) add(*one, group, one->touches);
  }
  for (const SmallObjects& one : unknown) {
    if (!(one.bytes > 0)) continue;
    const bool is_known = one.seen_objects >= kLeastObjects;  // and left out, because there are so many
    add(one, groups.size() - 1, is_known ? one.touches : one.bytes * groups.front().hotness());
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
      whole.touches += piece.touches;
      whole.missed = std::max(whole.missed, piece.touches);
    }
  }
  return pieces;
}

// Where the hottest pieces are kept.
double missed(std::vector<Piece> pieces, double room) {
  std::ranges::sort(pieces, std::ranges::greater{}, [](const Piece& one) { return one.touches / one.bytes; });
  double sum = 0;
  for (const Piece& one : pieces) {
    const double kept = std::min(room, one.bytes);
    sum += one.missed * (1 - kept / one.bytes);
    room -= kept;
  }
  return sum;
}

// The share of the misses of mixed objects; where `share` of what they take is there.
double saved(const Pieces& pieces, double bytes, double share) {
  const double before = missed(mixed(pieces), share * bytes);
  return before > 0 ? 1 - missed(sorted(pieces), share * bytes) / before : 0;
}

std::uint32_t share_of(double part, double whole) {
  return static_cast<std::uint32_t>(std::llround(std::clamp(part / whole, 0.0, 1.0) * kRegionShares));
}

SiteName first_frames(const SiteName& name, std::size_t frames) {
  return {name.begin(), name.begin() + static_cast<std::ptrdiff_t>(std::min(frames, name.size()))};
}

constexpr std::size_t kNone = ~std::size_t{0}, kSeveral = kNone - 1, kNotKnown = kNone - 2;

// By the first frames of names: in which region all sites are that begin so, and are known.
std::map<SiteName, std::size_t, SiteNumbers::Before> regions_by(std::size_t frames, std::span<const SiteName> names,
                                                                std::span<const std::size_t> region_of) {
  std::map<SiteName, std::size_t, SiteNumbers::Before> found;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto [at, is_new] = found.try_emplace(first_frames(names[i], frames), region_of[i]);
    if (is_new || region_of[i] == kNotKnown || at->second == region_of[i]) continue;
    at->second = at->second == kNotKnown ? region_of[i] : kSeveral;
  }
  return found;
}

// Sites of regions get as few frames as tell them from those of other regions, and of none: a stack is not looked at
// farther than that. Those that have the same are one then, and one that is not known joins those that begin alike.
void shorten_names(std::span<const SiteName> names, std::span<const SmallObjects> all, Plan& plan) {
  std::vector<std::size_t> region_of(names.size(), kNone);
  for (const SmallObjects& one : all) {
    if (one.seen_objects < kLeastObjects) region_of[one.site] = kNotKnown;
  }
  for (std::size_t region = 0; region < plan.regions.size(); ++region) {
    for (const std::uint32_t site : plan.regions[region].sites) region_of[site] = region;
  }
  std::vector<std::map<SiteName, std::size_t, SiteNumbers::Before>> by;
  for (std::size_t frames = 1; frames <= kNameFrames; ++frames) by.push_back(regions_by(frames, names, region_of));
  for (PlannedRegion& region : plan.regions) {
    std::vector<std::uint32_t> sites;
    for (const std::uint32_t site : region.sites) {
      std::size_t frames = 1;
      while (frames < kNameFrames && by[frames - 1].at(first_frames(names[site], frames)) == kSeveral) ++frames;
      const SiteName name = first_frames(names[site], frames);
      const auto known = std::ranges::find(plan.sites, name);
      sites.push_back(static_cast<std::uint32_t>(known - plan.sites.begin()));
      if (known == plan.sites.end()) plan.sites.push_back(name);
    }
    std::ranges::sort(sites);
    sites.erase(std::ranges::unique(sites).begin(), sites.end());
    region.sites = std::move(sites);
  }
}

}  // namespace

RegionChoice choose_regions(std::span<const SmallObjects> sites) {
  std::vector<SmallObjects> all(sites.begin(), sites.end());
  const std::size_t count = sort_known_first(all);
  const std::span<const SmallObjects> known(all.data(), count), unknown(all.data() + count, all.size() - count);
  double bytes = 0, touches = 0;
  std::uint64_t seen = 0;
  for (const SmallObjects& one : all) bytes += one.bytes;
  for (const SmallObjects& one : known) {
    touches += one.touches;
    seen += std::min(one.seen_touches, kLeastTouches);
  }
  if (seen < kLeastTouches) return {};
  const std::vector<Group> groups = groups_of(known);
  const Pieces pieces = pieces_of(groups, unknown);
  if (saved(pieces, bytes, 0.5) < kLeastSaving) return {};
  RegionChoice choice;
  choice.saving = {share_of(saved(pieces, bytes, 0.7), 1), share_of(saved(pieces, bytes, 0.5), 1)};
  for (const Group& group : std::span(groups).first(groups.size() - 1)) {  // the coldest lies where all else does
    PlannedRegion& region = choice.regions.emplace_back();
    for (const SmallObjects* const one : group.sites) region.sites.push_back(one->site);
    region.bytes = static_cast<std::uint64_t>(std::min(group.bytes, 0x1p63));
    region.of_touches = share_of(group.touches, touches);
    region.of_bytes = share_of(group.bytes, bytes);
  }
  return choice;
}

void plan_regions(const profile::ProcessProfile& process, Plan& plan) {
  SiteNumbers numbers(process.frames);
  std::vector<SmallObjects> found;
  for (const profile::SiteTotals& one : process.sites) {
    const double mean = one.objects > 0 ? static_cast<double>(one.allocated_bytes) / one.objects : HUGE_VAL;
    if (!(mean <= heap::kLargestSmall)) continue;
    found.push_back({numbers.number_of(one.site), heap::class_of(static_cast<std::size_t>(std::lround(mean))),
                     static_cast<double>(one.peak_bytes), one.touches, one.seen_objects, one.seen_touches});
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
  RegionChoice choice = choose_regions(sites);
  plan.regions = std::move(choice.regions);
  plan.region_saving = choice.saving;
  shorten_names(numbers.names(), sites, plan);
}

}  // namespace farheap::plan
