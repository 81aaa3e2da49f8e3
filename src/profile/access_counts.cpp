// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile/access_counts.hpp"

#include <algorithm>

namespace farheap::profile {

AccessCounts::AccessCounts(std::vector<SiteCount> counts) : counts_(std::move(counts)) {
  std::ranges::sort(counts_, {}, &SiteCount::site);
  std::size_t kept = 0;
  for (const SiteCount& one : counts_) {
    if (one.accesses == 0) continue;
    if (kept != 0 && counts_[kept - 1].site == one.site) {
      counts_[kept - 1].accesses += one.accesses;
    } else {
      counts_[kept++] = one;
    }
  }
  counts_.resize(kept);
}

std::uint64_t AccessCounts::of(SiteId site) const {
  const auto found = std::ranges::lower_bound(counts_, site, {}, &SiteCount::site);
  return found != counts_.end() && found->site == site ? found->accesses : 0;
}

AccessCounts& AccessCounts::operator+=(const AccessCounts& other) {
  std::vector<SiteCount> both = std::move(counts_);
  both.insert(both.end(), other.counts_.begin(), other.counts_.end());
  *this = AccessCounts(std::move(both));
  return *this;
}

}  // namespace farheap::profile
