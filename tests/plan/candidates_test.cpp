// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The scores of plans, for programs whose best plan is known. Seconds are those of the replay's own clock: nothing is
// timed here.
#include "plan/candidates.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "plan/sampled_world.hpp"
#include "seen_program.hpp"

namespace farheap::plan {
namespace {

constexpr Speeds kSpeeds{.own_seconds = 1, .seconds_a_page = 4e-6, .seconds_a_request = 80e-6};

struct Scored {
  explicit Scored(const Seen& seen) : profile(seen.profile()) {
    auto planned = make_plan(profile, "made up");
    EXPECT_TRUE(planned) << planned.error().message();
    made = std::move(*planned);
    hints = plan_hints(profile, "made up");
    score = score_plan(made, kSpeeds, &*hints);
  }
  profile::Profile profile;
  MadePlan made;
  Result<HintPlan> hints;
  PlanScore score;
};

// Two grids in turn, as lattice-Boltzmann has them.
void use_grids(Seen& seen, const Object& one, const Object& other, int steps) {
  forwards(one, [&](PageNumber page) { seen.use(page); });
  forwards(other, [&](PageNumber page) { seen.use(page); });
  for (int step = 0; step < steps; ++step) beside({one, other}, [&](PageNumber page) { seen.use(page); });
}

TEST(PlanScore, OfSweepsLiesBetweenTheOracleAndLeastRecentlyUsed) {
  const Object one{64, 9000}, other{16'384, 9000};
  Seen seen(4);
  (void)seen.born(seen.site({1}), one);
  (void)seen.born(seen.site({2}), other);
  use_grids(seen, one, other, 12);
  const Scored scored(seen);
  ASSERT_EQ(scored.score.levels.size(), 3u);
  for (const ScoredLevel& level : scored.score.levels) {
    EXPECT_GE(level.planned.reads, level.best * 0.95) << level.share;
    EXPECT_LT(level.planned.reads, level.lru) << level.share;
    EXPECT_LE(level.planned.seconds, level.planless.seconds * 1.1) << level.share;
    EXPECT_GE(level.planned.seconds, kSpeeds.own_seconds * 0.99);
    EXPECT_GE(level.locked, level.best * 0.95);
    EXPECT_LT(level.locked, level.lru);
  }
  EXPECT_FALSE(scored.score.is_in_vain());
}

// Where the program does something else than the plan says, a replay shows it.
TEST(PlanScore, APlanOfAnotherOrderIsNoFaster) {
  const Object one{64, 9000}, other{16'384, 9000};
  Seen right(4), wrong(4);
  for (Seen* const seen : {&right, &wrong}) {
    (void)seen->born(seen->site({1}), one);
    (void)seen->born(seen->site({2}), other);
  }
  use_grids(right, one, other, 12);
  forwards(one, [&](PageNumber page) { wrong.use(page); });
  forwards(other, [&](PageNumber page) { wrong.use(page); });
  for (int step = 0; step < 12; ++step) {
    forwards(other, [&](PageNumber page) { wrong.use(page); });
    backwards(one, [&](PageNumber page) { wrong.use(page); });
  }
  Scored scored(right);
  scored.made.plan = Scored(wrong).made.plan;
  const PlanScore score = score_plan(scored.made, kSpeeds, nullptr);
  ASSERT_EQ(score.levels.size(), 3u);
  ASSERT_EQ(scored.score.levels.size(), 3u);
  unsigned gaining = 0;
  for (std::size_t i = 0; i < score.levels.size(); ++i) {
    // A plan that is given up soon is as none: no better, as far as replays tell, and worse than one that gains.
    constexpr double kTells = 0.02;
    const double planned = scored.score.levels[i].planned.seconds, planless = scored.score.levels[i].planless.seconds;
    const bool gains = planned < (1 - kTells) * planless;
    gaining += gains ? 1 : 0;
    EXPECT_GT(score.levels[i].planned.seconds, gains ? planned : (1 - kTells) * std::min(planned, planless)) << i;
  }
  EXPECT_GE(gaining, 1u);
}

TEST(PlanScore, WithoutSpeedsReadsAreCompared) {
  PlanScore score;
  score.levels = {{.planless = {100, 0}, .planned = {160, 0}}, {.planless = {100, 0}, .planned = {100, 0}}};
  EXPECT_TRUE(score.is_in_vain());
  score.levels[1].planned.reads = 80;
  EXPECT_FALSE(score.is_in_vain());
  score.levels[1].planned.reads = 100;
  score.levels[0].planned.reads = 140;
  EXPECT_FALSE(score.is_in_vain()) << "replays are not as exact as that";
  score.levels = {{.planless = {100, 2}, .planned = {250, 1.5}}};
  EXPECT_FALSE(score.is_in_vain()) << "it reads more, and takes less time";
  EXPECT_FALSE(PlanScore{}.is_in_vain());
}

TEST(SampledWorld, WhatIsUsedInPassingLiesInOrderAndTheRestBehind) {
  const Object swept{64, 6000};
  Seen seen(4);
  (void)seen.born(seen.site({1}), swept);
  std::mt19937 random(1);
  for (int round = 0; round < 4; ++round) {
    forwards(swept, [&](PageNumber page) {
      seen.use(page);
      if (page % 8 == 0) seen.use(20'000 + random() % 2000);
    });
  }
  const profile::Profile profile = seen.profile();
  const SampledWorld world(profile.processes[0].touches, 16);
  const std::vector<LiveObject> objects{{0, swept.first * kPage, swept.pages * kPage}};
  const auto places = world.places_of(objects);
  ASSERT_EQ(places.size(), 1u);
  EXPECT_LE(places[0].first, 64 * kPage);
  EXPECT_GE(places[0].bytes, 5600 * kPage);
  EXPECT_LE(places[0].bytes, 6400 * kPage);
  EXPECT_NEAR(static_cast<double>(world.pages()), 8000, 700);
  // Each pass through the object is one through its pages, most of them after the one before.
  std::uint64_t next = 0, all = 0, before = 0;
  for (const ReplayedTouch& touch : world.touches()) {
    if (touch.page >= 6000) continue;
    ++all;
    next += touch.page == before + 1 ? 1 : 0;
    before = touch.page;
  }
  EXPECT_GT(next, all * 9 / 10);
}

TEST(SampledWorld, OfNothingIsEmpty) {
  const SampledWorld world({}, 1);
  EXPECT_TRUE(world.is_empty());
  EXPECT_TRUE(world.touches().empty());
}

// An object whose first page is before all of the sample was nowhere, and with it half of what a plan said.
TEST(SampledWorld, AnObjectBeginsBeforeItsFirstPageOfTheSample) {
  const Object swept{1, 6000};
  Seen seen(8);
  for (int round = 0; round < 4; ++round) forwards(swept, [&](PageNumber page) { seen.use(page); });
  const profile::Profile profile = seen.profile();
  const SampledWorld world(profile.processes[0].touches, 256);
  const std::vector<LiveObject> objects{{0, swept.first * kPage, swept.pages * kPage}};
  const auto places = world.places_of(objects);
  ASSERT_EQ(places.size(), 1u);
  EXPECT_EQ(places[0].first, 0u);
}

}  // namespace
}  // namespace farheap::plan
