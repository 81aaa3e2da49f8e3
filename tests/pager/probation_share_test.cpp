// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/probation_share.hpp"

#include <gtest/gtest.h>

#include <random>

namespace farheap::pager {
namespace {

constexpr std::uint64_t kProbation = 1000, kLeft = 4000;

// Touches pages that are out of view, one in probation `bias` times as likely as one that has left.
void touch(ProbationShare& share, int touches, double bias) {
  std::mt19937_64 random(1);
  const double here = bias * kProbation;
  std::bernoulli_distribution in_probation(here / (here + kLeft));
  for (int i = 0; i < touches; ++i) share.touched(in_probation(random), kProbation, kLeft);
}

TEST(ProbationShare, ShrinksWhereAllPagesAreUsedAlike) {
  ProbationShare share(10);
  touch(share, 100'000, 1.0);
  EXPECT_EQ(share.percent(), 1u);
}

TEST(ProbationShare, StaysWhereItTellsPagesInUseFromOthers) {
  ProbationShare share(10);
  touch(share, 100'000, 3.0);
  EXPECT_EQ(share.percent(), 10u);
}

TEST(ProbationShare, GrowsAgainWhenTheProgramChanges) {
  ProbationShare share(10);
  touch(share, 100'000, 1.0);
  touch(share, 100'000, 3.0);
  EXPECT_EQ(share.percent(), 10u);
}

TEST(ProbationShare, NeverShrinksToNothingAndNeverExceedsTheOption) {
  ProbationShare none(0), odd(3);
  touch(none, 20'000, 1.0);
  EXPECT_EQ(none.percent(), 0u);
  touch(odd, 100'000, 1.0);
  EXPECT_EQ(odd.percent(), 1u);
  touch(odd, 100'000, 5.0);
  EXPECT_EQ(odd.percent(), 3u);
}

}  // namespace
}  // namespace farheap::pager
