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
  std::vector<SiteCount> sum;
  sum.reserve(size() + other.size());
  auto one = counts_.begin();
  auto two = other.counts_.begin();
  while (one != counts_.end() && two != other.counts_.end()) {
    if (one->site == two->site) {
      sum.push_back({one->site, one->accesses + two->accesses});
      ++one, ++two;
    } else {
      sum.push_back(one->site < two->site ? *one++ : *two++);
    }
  }
  sum.insert(sum.end(), one, counts_.end());
  sum.insert(sum.end(), two, other.counts_.end());
  counts_ = std::move(sum);
  return *this;
}

}  // namespace farheap::profile
