// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/region_names.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "plan/site_numbers.hpp"

namespace farheap::plan {

namespace {

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

}  // namespace

void name_sites_of_regions(std::span<const SiteName> names, const std::function<bool(std::uint32_t)>& is_known,
                           Plan& plan) {
  std::vector<std::size_t> region_of(names.size(), kNone);
  for (std::uint32_t site = 0; site < names.size(); ++site) {
    if (!is_known(site)) region_of[site] = kNotKnown;
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

}  // namespace farheap::plan
