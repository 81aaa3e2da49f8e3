// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The worked examples of seed 001, "third". The counts of contexts 2 and 3 are those that its averages and differences
// come from.
#include "plan/similarity.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace farheap::plan::similarity_test {
namespace {

using profile::AccessCounts;

constexpr profile::SiteId kA = 1, kB = 2, kC = 3;
const AccessCounts kContext1({{kA, 10}, {kB, 5}});
// a: average 11, difference 1; b: average 4.5, difference 0.5.
const AccessCounts kContext2({{kA, 12}, {kB, 4}});

TEST(Similarity, OfObjectsAsInTheSeed) {
  EXPECT_DOUBLE_EQ(object_similarity(kContext1, kContext2), 100);
  EXPECT_NEAR(object_similarity(kContext1, AccessCounts({{kA, 3}, {kB, 29}, {kC, 1}})), 67, 0.5);
}

TEST(Similarity, OfHotnessAsInTheSeed) { EXPECT_NEAR(hotness_similarity(kContext1, kContext2), 9.9, 0.005); }

// The seed's 1.57 has an average of 17 beside a difference of 12.5. No count of b gives both: 29 gives 17 and 12, 30
// gives 17.5 and 12.5.
TEST(Similarity, OfHotnessInTheSeedsSecondExampleWithCountsThatAgree) {
  EXPECT_NEAR(hotness_similarity(kContext1, AccessCounts({{kA, 3}, {kB, 29}, {kC, 1}})), 1.61, 0.005);
  EXPECT_NEAR(hotness_similarity(kContext1, AccessCounts({{kA, 3}, {kB, 30}, {kC, 1}})), 1.60, 0.005);
}

TEST(Similarity, OfEqualCountsIsInfiniteAndOfNothingSharedNone) {
  EXPECT_TRUE(std::isinf(hotness_similarity(kContext1, kContext1)));
  EXPECT_EQ(hotness_similarity(kContext1, AccessCounts({{kC, 10}})), 0);
  EXPECT_EQ(object_similarity(kContext1, AccessCounts({{kC, 10}})), 0);
  EXPECT_TRUE(std::isinf(hotness_similarity(AccessCounts(), AccessCounts())));
  EXPECT_EQ(object_similarity(AccessCounts(), AccessCounts()), 100);
  EXPECT_EQ(object_similarity(kContext1, AccessCounts()), 0);
}

TEST(Similarity, IsSymmetricAndWithinItsBounds) {
  std::mt19937 random(11);
  const auto some = [&random] {
    std::vector<profile::SiteCount> counts(random() % 8);
    for (auto& one : counts) one = {static_cast<profile::SiteId>(random() % 10), random() % 1000};
    return AccessCounts(counts);
  };
  for (int round = 0; round < 1000; ++round) {
    const AccessCounts one = some(), other = some();
    const double objects = object_similarity(one, other), hotness = hotness_similarity(one, other);
    EXPECT_DOUBLE_EQ(objects, object_similarity(other, one));
    EXPECT_EQ(hotness, hotness_similarity(other, one));
    EXPECT_TRUE(objects >= 0 && objects <= 100);
    EXPECT_TRUE(hotness == 0 || hotness >= 1) << hotness;
    EXPECT_EQ(hotness == 0, objects == 0);
  }
}

}  // namespace
}  // namespace farheap::plan::similarity_test
