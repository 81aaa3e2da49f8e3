// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/site_numbers.hpp"

#include <algorithm>
#include <utility>

namespace farheap::plan {

bool SiteNumbers::Before::operator()(const SiteName& one, const SiteName& other) const {
  return std::ranges::lexicographical_compare(
      one, other, [](const profile::CodePlace& place, const profile::CodePlace& than) {
        return std::pair(place.file, place.offset) < std::pair(than.file, than.offset);
      });
}

SiteName SiteNumbers::name_of(profile::SiteId site) const {
  SiteName outwards;  // the outermost first
  for (; site != 0; site = frames_[site].inner) outwards.push_back(frames_[site].returns_to);
  std::ranges::reverse(outwards);
  if (outwards.size() > kNameFrames) outwards.resize(kNameFrames);
  return outwards;
}

std::uint32_t SiteNumbers::number_of(profile::SiteId site) {
  const auto [of_site, is_new_site] = by_site_.try_emplace(site, 0);
  if (!is_new_site) return of_site->second;
  const auto [named, is_new] = by_name_.try_emplace(name_of(site), static_cast<std::uint32_t>(names_.size()));
  if (is_new) names_.push_back(named->first);
  return of_site->second = named->second;
}

}  // namespace farheap::plan
