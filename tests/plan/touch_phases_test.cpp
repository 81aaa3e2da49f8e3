// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/touch_phases.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace farheap::plan::touch_phases_test {
namespace {

// Sites 1 to 4; 1 and 2 have one number, 9 does not count.
const NumberOfSite kNumbers = {{1, 10}, {2, 10}, {3, 30}, {4, 40}};

void touch(profile::ProcessProfile& of, profile::SiteId site, int times, std::uint32_t weight = 1) {
  for (int i = 0; i < times; ++i) of.touch_order.push_back({site, weight});
}

TEST(TouchPhases, AreWhereOtherSitesAreTouched) {
  profile::ProcessProfile one;
  for (int turn = 0; turn < 3; ++turn) {
    touch(one, 1, 128), touch(one, 2, 128), touch(one, 9, 100);
    touch(one, 3, 256);
  }
  const auto found = phases_of_touches(one, kNumbers);
  ASSERT_EQ(found.size(), 2u);
  ASSERT_EQ(found.at(10).size(), 2u);
  EXPECT_GT(found.at(10)[0], 0.9);
  EXPECT_GT(found.at(30)[1], 0.9);
  for (const auto& [number, of_site] : found)
    EXPECT_NEAR(std::accumulate(of_site.begin(), of_site.end(), 0.0), 1, 1e-9);
}

TEST(TouchPhases, CountByTheWeightOfTouches) {
  profile::ProcessProfile one;
  for (int i = 0; i < 256; ++i) touch(one, 1, 1), touch(one, 4, 1, 3);
  for (int i = 0; i < 256; ++i) touch(one, 3, 1), touch(one, 4, 1, 1);
  const auto found = phases_of_touches(one, kNumbers);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_NEAR(found.at(40)[0], 0.75, 0.1);
}

TEST(TouchPhases, OfASiteThatIsTouchedAFewTimesNothingIsTold) {
  profile::ProcessProfile one;
  touch(one, 1, 256), touch(one, 4, 5), touch(one, 3, 256);
  EXPECT_FALSE(phases_of_touches(one, kNumbers).contains(40));
  EXPECT_EQ(phases_of_touches(one, kNumbers).size(), 2u);
}

TEST(TouchPhases, ThereAreNoneWhereTooLittleIsKnownOrAllIsAlike) {
  EXPECT_TRUE(phases_of_touches({}, kNumbers).empty());
  profile::ProcessProfile few;
  touch(few, 1, 20), touch(few, 3, 20);
  EXPECT_TRUE(phases_of_touches(few, kNumbers).empty());
  profile::ProcessProfile mixed;
  std::mt19937 random(3);
  for (int i = 0; i < 4'000; ++i) touch(mixed, 1 + static_cast<profile::SiteId>(random() % 4), 1);
  EXPECT_TRUE(phases_of_touches(mixed, kNumbers).empty());
}

// Which of many sites are touched in a piece of the order is chance.
TEST(TouchPhases, ThereAreNoneOfVeryManySitesThatAreTouchedAtRandom) {
  profile::ProcessProfile one;
  NumberOfSite numbers;
  std::mt19937 random(4);
  for (profile::SiteId site = 1; site <= 300; ++site) numbers[site] = site;
  for (int i = 0; i < 4'000; ++i) touch(one, 1 + static_cast<profile::SiteId>(random() % 300), 1);
  EXPECT_TRUE(phases_of_touches(one, numbers).empty());
}

}  // namespace
}  // namespace farheap::plan::touch_phases_test
