// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/regions.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

namespace farheap::plan {
namespace {

constexpr double kMiB = 1 << 20;

using Sites = std::vector<std::uint32_t>;

constexpr std::uint64_t kSeen = 1'000;

RegionChoice choose(std::vector<SmallObjects> sites) {
  for (SmallObjects& one : sites) {
    if (one.seen_objects == 0) one.seen_objects = one.seen_touches = kSeen;
  }
  return choose_regions(sites);
}

TEST(Regions, WhatIsMuchHotterLiesByItself) {
  const std::vector<SmallObjects> sites = {{0, 4, 90 * kMiB, 1'000}, {1, 4, 10 * kMiB, 9'000}};
  const auto [regions, saving] = choose(sites);
  ASSERT_EQ(regions.size(), 1u) << "what is cold needs none";
  EXPECT_EQ(regions[0], (PlannedRegion{Sites{1}, static_cast<std::uint64_t>(10 * kMiB), 9'000, 1'000}));
  // By hand. Mixed, 30 % of the 9,000 miss; sorted, what is hot is there, and of the 90 MiB 60 are.
  EXPECT_NEAR(saving.at_70, 1e4 * (1 - 1'000 / 3. / 2'700), 1);
  EXPECT_NEAR(saving.at_50, 1e4 * (1 - 1'000 * 5 / 9. / 4'500), 1);
}

TEST(Regions, SitesThatAreAboutAsHotShareOne) {
  const std::vector<SmallObjects> sites = {
      {5, 1, 4 * kMiB, 4'000}, {6, 1, 4 * kMiB, 2'000}, {7, 1, 80 * kMiB, 500}, {8, 1, 12 * kMiB, 60}};
  const auto regions = choose(sites).regions;
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].sites, (Sites{5, 6}));
}

TEST(Regions, ThereAreSeveralWhereHotnessDiffersSeveralTimes) {
  const std::vector<SmallObjects> sites = {{0, 1, 100 * kMiB, 100}, {1, 1, 10 * kMiB, 1'000}, {2, 1, 2 * kMiB, 10'000}};
  const auto regions = choose(sites).regions;
  ASSERT_EQ(regions.size(), 2u);
  EXPECT_EQ(regions[0].sites, Sites{2});
  EXPECT_EQ(regions[1].sites, Sites{1});
}

TEST(Regions, OneOfAFewPagesJoinsTheNextInHotness) {
  const std::vector<SmallObjects> sites = {
      {0, 1, 0.1 * kMiB, 5'000}, {1, 1, 10 * kMiB, 9'000}, {2, 1, 100 * kMiB, 100}};
  const auto regions = choose(sites).regions;
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].sites, (Sites{0, 1}));
}

bool has_none(const std::vector<SmallObjects>& sites) { return choose(sites).regions.empty(); }

TEST(Regions, NoneWhereLittleWouldBeSaved) {
  EXPECT_TRUE(has_none({}));
  EXPECT_TRUE(has_none({{0, 1, 50 * kMiB, 5'000}})) << "one site";
  EXPECT_TRUE(has_none({{0, 1, 50 * kMiB, 5'000}, {1, 1, 50 * kMiB, 4'000}})) << "alike";
  EXPECT_TRUE(has_none({{0, 1, 1 * kMiB, 3'000}, {1, 1, 99 * kMiB, 97'000}})) << "hot, and little of all";
  EXPECT_TRUE(has_none({{0, 1, 50 * kMiB, 100, 900, 30}, {1, 1, 5 * kMiB, 900, 90, 30}})) << "too few touches to tell";
  EXPECT_TRUE(has_none({{0, 1, 50 * kMiB, 0}, {1, 1, 5 * kMiB, 0}}));
}

TEST(Regions, NoneWhereClassesKeepHotAndColdApartAlready) {
  EXPECT_TRUE(has_none({{0, 1, 90 * kMiB, 1'000}, {1, 2, 10 * kMiB, 9'000}}));
  EXPECT_FALSE(has_none({{0, 2, 90 * kMiB, 1'000}, {1, 2, 10 * kMiB, 9'000}}));
}

// Each look-up touches an entry and one of its five values, which lie beside it: hotness differs five times, and
// whatever is away is read once where they lie mixed.
TEST(Regions, NoneForNeighboursThatAreTouchedTogether) {
  EXPECT_TRUE(has_none({{0, 1, 10 * kMiB, 10'000}, {1, 1, 50 * kMiB, 10'000}}));
}

// A few objects of each of very many sites: which of them are hot is chance.
TEST(Regions, NoneWhereMostSitesAreNotKnown) {
  std::vector<SmallObjects> sites = {{0, 1, 10 * kMiB, 10'000, 90, 500}};
  for (std::uint32_t i = 1; i < 4'000; ++i) sites.push_back({i, 1, kMiB / 40, i % 50 == 0 ? 900. : 0., 1, i % 50 == 0});
  EXPECT_TRUE(choose_regions(sites).regions.empty());
  for (SmallObjects& one : sites) one.touches = one.site == 0 ? 10'000 : 0, one.seen_objects = 90;
  EXPECT_FALSE(choose_regions(sites).regions.empty()) << "known to be cold";
}

TEST(Regions, ASiteThatIsNotKnownIsInNone) {
  const std::vector<SmallObjects> sites = {
      {0, 1, 90 * kMiB, 1'000, 500, 50}, {1, 1, 10 * kMiB, 9'000, 60, 500}, {2, 1, 2 * kMiB, 90'000, 3, 60}};
  const auto regions = choose_regions(sites).regions;
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].sites, Sites{1});
}

TEST(Regions, OneThatNobodyTouchesIsTheColdest) {
  const std::vector<SmallObjects> sites = {{0, 1, 50 * kMiB, 0}, {1, 1, 50 * kMiB, 5'000}};
  const auto [regions, saving] = choose(sites);
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].sites, Sites{1});
  EXPECT_EQ(saving.at_50, kRegionShares);
}

TEST(Regions, OfAnySitesFewInOrderAndNoSiteTwice) {
  std::mt19937_64 random(7);
  int some = 0;
  for (int turn = 0; turn < 300; ++turn) {
    std::vector<SmallObjects> sites;
    for (std::uint32_t i = 0; i < random() % 200; ++i) {
      sites.push_back({i, 1 + static_cast<unsigned>(random() % 3),
                       std::exp2(static_cast<double>(random() % 30)) * static_cast<double>(random() % 2),
                       std::exp2(static_cast<double>(random() % 40)) * static_cast<double>(random() % 3),
                       random() % 20 == 0 ? 1 : kSeen, kSeen});
    }
    const auto [regions, saving] = choose(sites);
    EXPECT_LE(regions.size(), kMostRegions);
    EXPECT_EQ(regions.empty(), saving == RegionSaving());
    some += regions.empty() ? 0 : 1;
    std::set<std::uint32_t> seen;
    double hotness = INFINITY, bytes = 0, touches = 0;
    for (const PlannedRegion& region : regions) {
      double of_bytes = 0, of_touches = 0;
      for (const std::uint32_t site : region.sites) {
        EXPECT_TRUE(seen.insert(site).second);
        of_bytes += sites[site].bytes;
        of_touches += sites[site].touches;
      }
      ASSERT_GT(of_bytes, 0);
      EXPECT_LE(of_touches / of_bytes, hotness);
      hotness = of_touches / of_bytes;
      bytes += region.of_bytes;
      touches += region.of_touches;
    }
    EXPECT_LE(bytes, kRegionShares + kMostRegions);
    EXPECT_LE(touches, kRegionShares + kMostRegions);
    if (!regions.empty()) {
      EXPECT_GE(saving.at_50, kRegionShares / 5 - 1);
    }
  }
  EXPECT_GT(some, 20) << "the test tests nothing";
}

// ---- by phases

constexpr std::uint32_t kAll = kRegionShares;

TEST(Regions, SitesThatAreHotInDifferentPhasesLieApart) {
  const std::vector<SmallObjects> sites = {{0, 4, 50 * kMiB, 5'000, kSeen, kSeen, {1, 0}},
                                           {1, 4, 50 * kMiB, 5'000, kSeen, kSeen, {0, 1}}};
  const auto [regions, saving] = choose(sites);
  ASSERT_EQ(regions.size(), 2u) << "each is hot in its phase: none lies with what is cold";
  EXPECT_EQ(regions[0].sites, Sites{0});
  EXPECT_EQ(regions[0].of_phases, (std::vector<std::uint32_t>{kAll, 0}));
  EXPECT_EQ(regions[1].of_phases, (std::vector<std::uint32_t>{0, kAll}));
  EXPECT_EQ(saving.at_50, kAll) << "those of one phase have room";
  EXPECT_EQ(saving.at_70, kAll);
}

TEST(Regions, SitesThatAreHotInTheSamePhasesShareOne) {
  const std::vector<SmallObjects> sites = {{0, 4, 25 * kMiB, 2'500, kSeen, kSeen, {0.9, 0.1}},
                                           {1, 4, 50 * kMiB, 5'000, kSeen, kSeen, {0.1, 0.9}},
                                           {2, 4, 25 * kMiB, 2'500, kSeen, kSeen, {1, 0}}};
  const auto regions = choose(sites).regions;
  ASSERT_EQ(regions.size(), 2u);
  std::set<Sites> seen;
  for (const PlannedRegion& region : regions) seen.insert(region.sites);
  EXPECT_EQ(seen, (std::set<Sites>{{0, 2}, {1}}));
}

TEST(Regions, PhasesAreNoReasonWhereTheySaveNothing) {
  EXPECT_TRUE(has_none(
      {{0, 4, 50 * kMiB, 5'000, kSeen, kSeen, {0.5, 0.5}}, {1, 4, 50 * kMiB, 4'000, kSeen, kSeen, {0.4, 0.6}}}))
      << "used alike";
  EXPECT_TRUE(
      has_none({{0, 4, 50 * kMiB, 5'000, kSeen, kSeen, {1, 0}}, {1, 5, 50 * kMiB, 5'000, kSeen, kSeen, {0, 1}}}))
      << "of two classes, which lie apart anyway";
  EXPECT_TRUE(has_none({{0, 4, 50 * kMiB, 5'000, kSeen, kSeen, {1, 0}}, {1, 4, 0.2 * kMiB, 20, kSeen, kSeen, {0, 1}}}))
      << "a few pages";
}

TEST(Regions, HotOnesAreSplitAndTheColdestLiesWhereAllElseDoes) {
  const std::vector<SmallObjects> sites = {{0, 4, 20 * kMiB, 20'000, kSeen, kSeen, {1, 0}},
                                           {1, 4, 20 * kMiB, 20'000, kSeen, kSeen, {0, 1}},
                                           {2, 4, 60 * kMiB, 100, kSeen, kSeen, {0.5, 0.5}}};
  const auto [regions, saving] = choose(sites);
  EXPECT_GT(saving.at_50, kAll / 2);
  std::set<std::uint32_t> seen;
  for (const PlannedRegion& region : regions) seen.insert(region.sites.begin(), region.sites.end());
  EXPECT_EQ(seen, (std::set<std::uint32_t>{0, 1}));
}

TEST(Regions, WhoseTimesAreNotKnownIsTouchedAsAllAre) {
  const std::vector<SmallObjects> sites = {{0, 4, 40 * kMiB, 4'000, kSeen, kSeen, {1, 0}},
                                           {1, 4, 40 * kMiB, 4'000, kSeen, kSeen, {0, 1}},
                                           {2, 4, 20 * kMiB, 2'000, kSeen, kSeen, {}}};
  const auto regions = choose(sites).regions;
  ASSERT_EQ(regions.size(), 3u);
  for (const PlannedRegion& region : regions) {
    if (region.sites == Sites{2}) {
      EXPECT_EQ(region.of_phases, (std::vector<std::uint32_t>{kAll / 5, kAll / 5}));
    }
  }
}

// A recording sees its beginning in detail: what is used there seems to be touched much more often.
TEST(Regions, AllPhasesCountAlike) {
  const std::vector<SmallObjects> sites = {{0, 4, 50 * kMiB, 95'000, kSeen, kSeen, {1, 0}},
                                           {1, 4, 50 * kMiB, 5'000, kSeen, kSeen, {0, 1}}};
  const auto regions = choose(sites).regions;
  ASSERT_EQ(regions.size(), 2u);
  for (const PlannedRegion& region : regions) EXPECT_EQ(region.of_touches, kAll / 2);
}

TEST(Regions, APhaseInWhichNothingKnownIsTouchedHasNoShares) {
  const std::vector<SmallObjects> sites = {{0, 4, 50 * kMiB, 5'000, kSeen, kSeen, {1, 0, 0}},
                                           {1, 4, 50 * kMiB, 5'000, kSeen, kSeen, {0, 1, 0}}};
  const auto regions = choose(sites).regions;
  ASSERT_EQ(regions.size(), 2u);
  for (const PlannedRegion& region : regions) EXPECT_EQ(region.of_phases.at(2), 0u);
}

TEST(Regions, OfAProfileAreByTheOrderOfTouches) {
  const auto mib = static_cast<std::uint64_t>(kMiB);
  profile::ProcessProfile process;
  process.frames = {{}, {0, {1, 10}}, {0, {1, 20}}};
  process.sites = {{1, 5e5, 40 * mib, 40 * mib, 40 * mib, 5'000, 400, 400},
                   {2, 5e5, 40 * mib, 40 * mib, 40 * mib, 5'000, 400, 400}};
  Plan plan;
  plan_regions(process, plan);
  EXPECT_TRUE(plan.regions.empty()) << "they are as hot as each other";
  for (int i = 0; i < 1'200; ++i) process.touch_order.push_back({i / 200 % 2 == 0 ? 1u : 2u, 10});
  plan_regions(process, plan);
  ASSERT_EQ(plan.regions.size(), 2u);
  for (const PlannedRegion& region : plan.regions) {
    ASSERT_GE(region.of_phases.size(), 2u);
    EXPECT_GT(std::ranges::max(region.of_phases), kAll / 10 * 8);
    EXPECT_LT(std::ranges::min(region.of_phases), kAll / 10 * 2);
  }
  for (profile::SiteTouch& touch : process.touch_order)
    touch.site = touch.site == 2 ? 1u : 2u;  // the same from the other end
  plan = {};
  plan_regions(process, plan);
  EXPECT_EQ(plan.regions.size(), 2u);
  process.touch_order.resize(40);
  plan = {};
  plan_regions(process, plan);
  EXPECT_TRUE(plan.regions.empty()) << "too few tell nothing";
}

// ---- of a profile

TEST(Regions, OfAProfileNameSitesByAsManyFramesAsTellThemAndLeaveLargeObjectsOut) {
  profile::ProcessProfile process;
  process.frames.resize(1);
  const auto stack = [&](std::uint64_t first, std::size_t depth) {
    profile::SiteId inner = 0;
    for (std::size_t i = 0; i < depth; ++i) {
      process.frames.push_back({inner, {1, first + i}});
      inner = static_cast<profile::SiteId>(process.frames.size() - 1);
    }
    return inner;
  };
  const auto hot = stack(100, 6), cold = stack(200, 2), large = stack(300, 2), none = stack(400, 1);
  const auto mib = static_cast<std::uint64_t>(kMiB);
  process.sites = {{hot, 1e5, 10 * mib, 10 * mib, 10 * mib, 9'000, 40, 400},
                   {cold, 9e5, 90 * mib, 90 * mib, 90 * mib, 1'000, 360, 40},
                   {large, 10, 100 * mib, 100 * mib, 100 * mib, 90'000, 0, 0},
                   {none, 0, 0, 4096, 4096, 0}};
  Plan plan;
  plan.sites = {{{1, 300}, {1, 301}}};
  plan_regions(process, plan);
  ASSERT_EQ(plan.regions.size(), 1u);
  ASSERT_EQ(plan.sites.size(), 2u) << "only what is in a region joins";
  EXPECT_EQ(plan.regions[0].sites, Sites{1});
  EXPECT_EQ(plan.sites[1], (SiteName{{1, 100}}));
  plan.sites = {plan.sites[1]};
  plan_regions(process, plan);
  EXPECT_EQ(plan.sites.size(), 1u) << "it was there";
  EXPECT_EQ(plan.regions[0].sites, Sites{0});
}

// Both allocate by the same function, which another one calls.
TEST(Regions, SitesThatBeginAlikeAreNamedByMoreFrames) {
  const auto mib = static_cast<std::uint64_t>(kMiB);
  profile::ProcessProfile process;
  process.frames = {{}, {0, {1, 10}}, {1, {1, 20}}, {2, {1, 30}}, {2, {1, 40}}, {1, {1, 50}}};
  process.sites = {{3, 1e5, 10 * mib, 10 * mib, 10 * mib, 9'000, 40, 400},
                   {4, 8e5, 80 * mib, 80 * mib, 80 * mib, 1'000, 320, 40},
                   {5, 1e5, 10 * mib, 10 * mib, 10 * mib, 8'000, 40, 400}};
  Plan plan;
  plan_regions(process, plan);
  ASSERT_EQ(plan.regions.size(), 1u);
  ASSERT_EQ(plan.regions[0].sites.size(), 2u);
  EXPECT_EQ(plan.sites[0], (SiteName{{1, 10}, {1, 20}, {1, 30}}));
  EXPECT_EQ(plan.sites[1], (SiteName{{1, 10}, {1, 50}}));
  process.frames.push_back({3, {1, 60}});
  process.frames.push_back({4, {1, 60}});
  process.sites[1].site = 7;
  process.sites.push_back({6, 10, 1'000, 1'000, 1'000, 0, 1, 0});
  plan = {};
  plan_regions(process, plan);
  EXPECT_EQ(plan.sites[0], (SiteName{{1, 10}, {1, 20}, {1, 30}})) << "what is not known is no reason for more";
}

}  // namespace
}  // namespace farheap::plan
