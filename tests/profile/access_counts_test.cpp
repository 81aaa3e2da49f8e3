// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile/access_counts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

namespace farheap::profile {
namespace {

using ::testing::ElementsAre;

TEST(AccessCounts, AreSortedAddedUpAndWithoutZeros) {
  const AccessCounts counts({{7, 2}, {3, 1}, {9, 0}, {7, 5}});
  EXPECT_THAT(counts.sites(), ElementsAre(SiteCount{3, 1}, SiteCount{7, 7}));
  EXPECT_EQ(counts.of(7), 7u);
  EXPECT_EQ(counts.of(9), 0u);
  EXPECT_EQ(counts.of(1000), 0u);
}

TEST(AccessCounts, CanBeAddedToThemselves) {
  AccessCounts counts({{1, 2}, {3, 4}});
  counts += counts;
  EXPECT_EQ(counts, AccessCounts({{1, 4}, {3, 8}}));
}

TEST(AccessCounts, AreAddedLikeMaps) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::map<SiteId, std::uint64_t> expected;
    AccessCounts sum;
    for (int part = 0; part < 4; ++part) {
      std::vector<SiteCount> some(random() % 12);
      for (SiteCount& one : some) {
        one = {static_cast<SiteId>(random() % 15), random() % 3};
        if (one.accesses != 0) expected[one.site] += one.accesses;
      }
      sum += AccessCounts(some);
    }
    std::vector<SiteCount> wanted;
    for (const auto& [site, accesses] : expected) wanted.push_back({site, accesses});
    EXPECT_EQ(std::vector(sum.sites().begin(), sum.sites().end()), wanted);
  }
}

}  // namespace
}  // namespace farheap::profile
