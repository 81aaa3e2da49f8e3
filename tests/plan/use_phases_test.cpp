// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/use_phases.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "base/units.hpp"
#include "profile/page_trace.hpp"

namespace farheap::plan::use_phases_test {
namespace {

using base::kPageBytes;
using testing::ElementsAre;

constexpr profile::SiteId kA = 3, kB = 5, kC = 7;
constexpr pager::PageNumber kFirstOfA = 0, kFirstOfB = 1000, kFirstOfC = 2000, kElsewhere = 5000;

// Three objects of 1000 pages, one a site.
profile::ProcessProfile process() {
  profile::ProcessProfile made;
  made.objects = {{.site = kA, .first = kFirstOfA * kPageBytes, .bytes = 1000 * kPageBytes, .born = 1},
                  {.site = kB, .first = kFirstOfB * kPageBytes, .bytes = 1000 * kPageBytes, .born = 2},
                  {.site = kC, .first = kFirstOfC * kPageBytes, .bytes = 1000 * kPageBytes, .born = 3}};
  return made;
}

// `pages` uses, one after the other, from the page on.
void use(profile::ProcessProfile& of, pager::PageNumber first, std::uint32_t pages) {
  for (std::uint32_t i = 0; i < pages; ++i) {
    of.touches.words.push_back(profile::pack({first + i, profile::PageEvent::kCame}));
  }
}

void expect_sound(const UsePhases& found, std::size_t uses) {
  std::uint64_t all = 0, visits = 0;
  for (const UsePhase& phase : found.phases) {
    all += phase.uses;
    visits += phase.visits;
    EXPECT_EQ(phase.of_site.size(), found.sites.size() + 1);
    EXPECT_EQ(std::accumulate(phase.of_site.begin(), phase.of_site.end(), std::uint64_t{0}), phase.uses);
  }
  EXPECT_EQ(all, uses) << "no use is lost, and none is counted twice";
  EXPECT_EQ(visits, found.order.size());
  for (std::size_t i = 1; i < found.order.size(); ++i) EXPECT_NE(found.order[i], found.order[i - 1]);
  for (const std::uint32_t number : found.order) EXPECT_LT(number, found.phases.size());
}

TEST(CutIntoPhases, TellsThePhaseOfEachUse) {
  std::vector<std::uint32_t> uses(100, 0);
  uses.insert(uses.end(), 100, 1);
  uses.insert(uses.end(), 100, 0);
  const CutUses cut = cut_into_phases(uses, 2, {.most = 12, .least_uses = 20}, 4);
  ASSERT_EQ(cut.phases.size(), 2u);
  EXPECT_THAT(cut.order, ElementsAre(0, 1, 0));
  EXPECT_EQ(cut.phase_of, uses) << "cut where it changes";
  EXPECT_EQ(cut.phases[0].visits, 2u);
}

// Chance decides which of many things, used alike, a piece has.
TEST(CutIntoPhases, OfWhatIsUsedAtRandomIsOne) {
  std::mt19937 random(5);
  std::vector<std::uint32_t> uses;
  for (int i = 0; i < 2'048; ++i) uses.push_back(static_cast<std::uint32_t>(random() % 17));
  EXPECT_EQ(cut_into_phases(uses, 17, {.most = 32, .least_uses = 64}, 8).phases.size(), 1u);
}

// The first is seen in detail, of what follows a part: as much time is as much weight.
TEST(CutIntoPhases, PiecesAreOfOneWeight) {
  std::vector<std::uint32_t> uses(2'000, 0), weights(2'000, 1);
  for (int i = 0; i < 6; ++i) {
    uses.insert(uses.end(), 20, i % 2 == 0 ? 1 : 0);
    weights.insert(weights.end(), 20, 100);
  }
  const CutUses cut = cut_into_phases(uses, 2, {.most = 32, .least_uses = 16}, 4, weights);
  EXPECT_EQ(cut.phases.size(), 2u);
  EXPECT_EQ(cut.order.size(), 7u);
  EXPECT_EQ(cut_into_phases(uses, 2, {.most = 32, .least_uses = 16}, 4).order.size(), 2u) << "without weights";
}

TEST(CutIntoPhases, OfNothingIsNothing) {
  const CutUses cut = cut_into_phases({}, 3, {}, 4);
  EXPECT_TRUE(cut.phases.empty());
  EXPECT_TRUE(cut.phase_of.empty());
}

TEST(UsePhases, WhatUsesTheSameIsOnePhaseThatComesAgain) {
  profile::ProcessProfile one = process();
  use(one, kFirstOfA, 640);
  for (int i = 0; i < 3; ++i) {
    use(one, kFirstOfB, 640);
    use(one, kFirstOfC, 320);
  }
  const UsePhases found = use_phases(one);
  expect_sound(found, 640 + 3 * 960);
  EXPECT_THAT(found.sites, ElementsAre(kB, kC, kA)) << "the most used first";
  EXPECT_THAT(found.order, ElementsAre(0, 1, 2, 1, 2, 1, 2));
  ASSERT_EQ(found.phases.size(), 3u);
  EXPECT_EQ(found.phases[0].visits, 1u);
  EXPECT_EQ(found.phases[1].visits, 3u);
  EXPECT_GT(found.phases[0].of_site[2], 600u) << "A";
  EXPECT_GT(found.phases[1].of_site[0], 1800u) << "B";
  EXPECT_GT(found.phases[2].of_site[1], 900u) << "C";
}

TEST(UsePhases, TwoObjectsInTurnsAreOnePhase) {
  profile::ProcessProfile one = process();
  for (std::uint32_t i = 0; i < 900; ++i) {
    use(one, kFirstOfA + i, 1);
    use(one, kFirstOfB + i, 1);
  }
  const UsePhases found = use_phases(one);
  expect_sound(found, 1800);
  ASSERT_EQ(found.phases.size(), 1u);
  EXPECT_EQ(found.phases[0].of_site[0], 900u);
  EXPECT_EQ(found.phases[0].of_site[1], 900u);
}

TEST(UsePhases, WhatIsInNoLargeObjectIsCounted) {
  profile::ProcessProfile one = process();
  use(one, kFirstOfA, 500);
  use(one, kElsewhere, 500);
  const UsePhases found = use_phases(one);
  expect_sound(found, 1000);
  EXPECT_THAT(found.sites, ElementsAre(kA));
  EXPECT_EQ(found.phases.size(), 2u);
}

TEST(UsePhases, OfTooLittleNothingIsSaid) {
  profile::ProcessProfile one = process();
  use(one, kFirstOfA, 63);
  EXPECT_TRUE(use_phases(one).phases.empty());
  one = process();
  use(one, kElsewhere, 500);
  EXPECT_TRUE(use_phases(one).phases.empty()) << "nothing of large objects";
  EXPECT_TRUE(use_phases({}).phases.empty());
}

TEST(UsePhases, OfManySitesTheMostUsedAreKept) {
  profile::ProcessProfile one;
  for (std::uint32_t i = 0; i < 200; ++i) {
    one.objects.push_back({.site = i + 1, .first = i * 100 * kPageBytes, .bytes = 100 * kPageBytes, .born = i + 1});
    use(one, i * 100, 1 + i % 50);
  }
  const UsePhases found = use_phases(one);
  expect_sound(found, one.touches.words.size());
  EXPECT_EQ(found.sites.size(), UsePhases::kMostSites);
}

TEST(UsePhases, NoMoreThanIsAskedFor) {
  std::mt19937 random(1);
  profile::ProcessProfile one;
  for (std::uint32_t i = 0; i < 40; ++i) {
    one.objects.push_back({.site = i + 1, .first = i * 100 * kPageBytes, .bytes = 100 * kPageBytes, .born = i + 1});
  }
  for (int i = 0; i < 400; ++i) use(one, random() % 40 * 100, 64);
  for (const std::size_t most : {std::size_t{1}, std::size_t{2}, std::size_t{12}}) {
    const UsePhases found = use_phases(one, most);
    expect_sound(found, 400 * 64);
    EXPECT_LE(found.phases.size(), most);
    EXPECT_GE(found.phases.size(), 1u);
  }
}

}  // namespace
}  // namespace farheap::plan::use_phases_test
