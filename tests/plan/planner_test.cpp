// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs that are made up are seen as the sampler would see them, and planned.
#include "plan/planner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "seen_program.hpp"

namespace farheap::plan {
namespace {

// ---- what gets none

TEST(Planner, WithoutAnOrderThereIsNoPlan) {
  profile::Profile profile;
  EXPECT_EQ(process_to_plan(profile), nullptr);
  auto none = make_plan(profile, "p");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kInvalidArgument);
  profile.processes = {{}, {}};
  EXPECT_EQ(process_to_plan(profile), nullptr);
  EXPECT_FALSE(make_plan(profile, "p"));
}

TEST(Planner, OfFewUsesThereIsNone) {
  Seen seen(0, 1);
  (void)seen.born(seen.site({1}), {0, 100});
  for (PageNumber page = 0; page < 63; ++page) seen.use(page);
  const auto none = seen.plan();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(none.error().why.find("63 uses"), std::string::npos) << none.error().message();
  seen.use(63);
  EXPECT_TRUE(seen.plan());
}

TEST(Planner, OfRandomUseThereIsNone) {
  std::mt19937 random(1);
  const Object object{64, 20'000};
  Seen seen(4);
  (void)seen.born(seen.site({1}), object);
  for (int i = 0; i < 200'000; ++i) seen.use(object.first + random() % object.pages);
  const auto none = seen.plan();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(none.error().why.find(" %"), std::string::npos) << none.error().message();
}

TEST(Planner, WhatIsInNoLargeObjectIsNotForeseen) {
  Seen seen(4);
  (void)seen.born(seen.site({1}), {0, 64});
  for (int round = 0; round < 5; ++round) forwards({1000, 10'000}, [&](PageNumber page) { seen.use(page); });
  const auto none = seen.plan();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kUnavailable);
}

// Sums of such figures run over, and what is made of them is nonsense.
TEST(Planner, AnOrderThatNoSamplerWritesIsRefused) {
  Seen seen(4);
  const Object object{64, 10'000};
  (void)seen.born(seen.site({1}), object);
  for (int i = 0; i < 6; ++i) forwards(object, [&](PageNumber page) { seen.use(page); });
  const profile::Profile right = seen.profile();
  ASSERT_TRUE(make_plan(right, "p"));
  const auto expect_refused = [](const profile::Profile& hostile, const std::string& section) {
    const auto made = make_plan(hostile, "p");
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, ErrorCode::kCorrupt);
    EXPECT_NE(made.error().why.find("section " + section), std::string::npos) << made.error().message();
  };
  for (const std::uint32_t window : {profile::kMostSampleWindow + 1, ~std::uint32_t{0}}) {
    profile::Profile hostile = right;
    hostile.processes[0].touches.window = window;
    expect_refused(hostile, "5");
  }
  for (const std::uint32_t log2 : {profile::kMostSampleLog2 + 1, 63u, 64u, ~0u}) {
    profile::Profile hostile = right;
    hostile.processes[0].touches.one_in_log2 = log2;
    expect_refused(hostile, "5");
    hostile = right;
    hostile.processes[0].detailed = hostile.processes[0].touches;
    hostile.processes[0].detailed.one_in_log2 = log2;
    expect_refused(hostile, "8");
  }
}

// The largest that are taken: the plan can be read again, and no time or size has run over.
TEST(Planner, TheMostThatASamplerMayWriteIsPlanned) {
  Seen seen(4);
  const Object object{64, 10'000};
  (void)seen.born(seen.site({1}), object);
  for (int i = 0; i < 6; ++i) forwards(object, [&](PageNumber page) { seen.use(page); });
  profile::Profile most = seen.profile();
  most.processes[0].touches.one_in_log2 = profile::kMostSampleLog2;
  most.processes[0].touches.window = profile::kMostSampleWindow;
  most.processes[0].objects[0].bytes = profile::kMostObjectEnd - most.processes[0].objects[0].first;
  if (const auto made = make_plan(most, "p")) {
    EXPECT_TRUE(read_plan(encode(made->plan), "p"));
    EXPECT_EQ(made->plan.phases.at(0).window, profile::kMostSampleWindow);
    EXPECT_EQ(made->plan.phases.at(0).window_pages, 1u << 20);
  }
}

TEST(Planner, OfTheProcessThatIsSeenMost) {
  Seen little(4), much(4);
  for (Seen* const one : {&little, &much}) (void)one->born(one->site({1}), {0, 10'000});
  for (int i = 0; i < 3; ++i) forwards({0, 10'000}, [&](PageNumber page) { much.use(page); });
  forwards({0, 5000}, [&](PageNumber page) { little.use(page); });
  profile::Profile both = little.profile();
  both.processes.push_back(much.profile().processes[0]);
  both.processes[1].name = "the other";
  EXPECT_EQ(process_to_plan(both), &both.processes[1]);
  EXPECT_EQ(make_plan(both, "p")->plan.program, "the other");
}

// One process at random kept all others of the run from a plan.
TEST(Planner, WhereNoneCanBeMadeOfItAnotherProcessIsPlanned) {
  std::mt19937 random(1);
  Seen at_random(4), swept(4);
  for (Seen* const one : {&at_random, &swept}) (void)one->born(one->site({1}), {64, 10'000});
  for (int i = 0; i < 200'000; ++i) at_random.use(64 + random() % 10'000);
  for (int i = 0; i < 6; ++i) forwards({64, 10'000}, [&](PageNumber page) { swept.use(page); });
  profile::Profile both = at_random.profile();
  both.processes.push_back(swept.profile().processes[0]);
  both.processes[1].name = "the other";
  ASSERT_EQ(process_to_plan(both), &both.processes[0]);
  const auto made = make_plan(both, "p");
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(made->plan.program, "the other");
  EXPECT_EQ(made->process, &both.processes[1]);
}

// ---- what is in it

TEST(Planner, ASweepOnceHasNoRound) {
  Seen seen(3);
  const Object object{64, 8192};
  (void)seen.born(seen.site({1}), object);
  forwards(object, [&](PageNumber page) { seen.use(page); });
  const Plan plan = planned(seen);
  EXPECT_EQ(plan.phases.at(0).round, 0u);
  EXPECT_EQ(plan.program, "made up");
  EXPECT_EQ(plan.phases.at(0).window, 8u);
  EXPECT_EQ(plan.phases.at(0).window_pages, 64u);
  EXPECT_GE(plan.phases.at(0).foreseen, 99u);
  ASSERT_EQ(plan.phases.at(0).objects.size(), 1u);
  EXPECT_EQ(plan.phases.at(0).objects[0].bytes, 8192 * kPage);
  EXPECT_GE(plan.phases.at(0).objects[0].foreseen, 99u);
  EXPECT_EQ(plan.phases.at(0).objects[0].parts.size(), plan.phases.at(0).once) << "each sampled page was used once";
}

TEST(Planner, SweepsAreARound) {
  Seen seen(3);
  const Object object{64, 8192};
  (void)seen.born(seen.site({1}), object);
  for (int i = 0; i < 6; ++i) forwards(object, [&](PageNumber page) { seen.use(page); });
  const Plan plan = planned(seen);
  const auto sampled = static_cast<double>(plan.phases.at(0).objects.at(0).parts.size());
  EXPECT_NEAR(plan.phases.at(0).round, sampled, 2);
  EXPECT_GE(plan.phases.at(0).once, sampled / 2);
  EXPECT_LE(plan.phases.at(0).once, 2 * sampled);
  for (const auto& uses : plan.phases.at(0).objects[0].parts) {
    const auto in_round =
        std::ranges::count_if(uses, [&](const PlannedUse& use) { return use.time >= plan.phases.at(0).once; });
    EXPECT_EQ(in_round, 1);
  }
}

TEST(Planner, NoMorePartsThanNeeded) {
  Seen seen(0);
  const Object object{64, 20'000};
  (void)seen.born(seen.site({1}), object);
  for (int i = 0; i < 4; ++i) forwards(object, [&](PageNumber page) { seen.use(page); });
  const Plan plan = planned(seen);
  ASSERT_EQ(plan.phases.at(0).objects.size(), 1u);
  EXPECT_EQ(plan.phases.at(0).objects[0].parts.size(), 1024u);
  EXPECT_LT(encode(plan).size(), 100'000u);
}

TEST(Planner, SitesAreNamedByTheirFourInnermostFrames) {
  Seen seen(4);
  const std::vector<Object> objects = {{0, 4096}, {5000, 4096}, {10'000, 4096}};
  (void)seen.born(seen.site({1, 2, 3, 4, 5, 6}), objects[0]);
  (void)seen.born(seen.site({1, 2, 3, 4, 7}), objects[1]);
  (void)seen.born(seen.site({1, 2}), objects[2]);
  for (int i = 0; i < 4; ++i) {
    for (const Object& object : objects) forwards(object, [&](PageNumber page) { seen.use(page); });
  }
  const Plan plan = planned(seen);
  ASSERT_EQ(plan.sites.size(), 2u);
  EXPECT_EQ(plan.sites[0], (SiteName{{1, 1}, {1, 2}, {1, 3}, {1, 4}}));
  EXPECT_EQ(plan.sites[1], (SiteName{{1, 1}, {1, 2}}));
  ASSERT_EQ(plan.phases.at(0).objects.size(), 3u);
  EXPECT_EQ(plan.phases.at(0).objects[0].site, 0u);
  EXPECT_EQ(plan.phases.at(0).objects[0].number, 0u);
  EXPECT_EQ(plan.phases.at(0).objects[1].site, 0u);
  EXPECT_EQ(plan.phases.at(0).objects[1].number, 1u) << "they live at the same time";
  EXPECT_EQ(plan.phases.at(0).objects[2].site, 1u);
  EXPECT_EQ(plan.phases.at(0).objects[2].number, 0u);
}

TEST(Planner, WhatIsFreedAndAllocatedAnewIsOneObject) {
  Seen seen(4);
  const Object kept{0, 8192}, brief{10'000, 4096};
  (void)seen.born(seen.site({1}), kept);
  for (int i = 0; i < 6; ++i) {
    forwards(kept, [&](PageNumber page) { seen.use(page); });
    const std::size_t object = seen.born(seen.site({2}), brief);
    forwards(brief, [&](PageNumber page) { seen.use(page); });
    seen.died(object);
  }
  const Plan plan = planned(seen);
  ASSERT_EQ(plan.phases.at(0).objects.size(), 2u);
  EXPECT_EQ(plan.phases.at(0).objects[1].number, 0u);
  EXPECT_EQ(plan.phases.at(0).objects[1].bytes, 4096 * kPage);
  EXPECT_NE(plan.phases.at(0).round, 0u);
}

// In the beginning one object is swept forwards, and then another one in its place backwards. The beginning in detail
// has a round, but it is the first one's.
TEST(Planner, TheBeginningIsNotOfWhoHadThePagesLast) {
  Seen beginning(3), whole(3);
  const Object object{64, 8192};
  std::size_t first = 0;
  for (Seen* const seen : {&beginning, &whole}) {
    first = seen->born(seen->site({1}), object);
    for (int i = 0; i < 6; ++i) forwards(object, [&](PageNumber page) { seen->use(page); });
  }
  whole.died(first);
  (void)whole.born(whole.site({2}), object);
  for (int i = 0; i < 18; ++i) backwards(object, [&](PageNumber page) { whole.use(page); });
  profile::Profile profile = whole.profile();
  profile.processes[0].detailed = beginning.profile().processes[0].touches;
  const auto made = make_plan(profile, "p");
  ASSERT_TRUE(made) << made.error().message();
  const Plan* const plan = &made->plan;
  ASSERT_EQ(plan->phases.at(0).objects.size(), 1u);
  EXPECT_EQ(plan->sites.at(plan->phases.at(0).objects[0].site), (SiteName{{1, 2}}));
  const auto& parts = plan->phases.at(0).objects[0].parts;
  ASSERT_FALSE(parts.front().empty() || parts.back().empty());
  EXPECT_GT(parts.front().back().time, parts.back().back().time) << "it goes backwards";
}

TEST(Planner, OfTwoInTurnEachIsTheOneItFollows) {
  // As with old and new: each round frees the older of two and allocates another one.
  Seen seen(4);
  std::deque<std::pair<std::size_t, Object>> live;
  const auto make = [&](std::uint64_t at) {
    const Object object{at, 8192};
    live.emplace_back(seen.born(seen.site({1}), object), object);
  };
  make(0);
  make(10'000);
  for (int i = 0; i < 8; ++i) {
    beside({live[0].second, live[1].second}, [&](PageNumber page) { seen.use(page); });
    const std::uint64_t at = live[0].second.first;
    seen.died(live[0].first);
    live.pop_front();
    make(at);
  }
  const Plan plan = planned(seen);
  ASSERT_EQ(plan.phases.at(0).objects.size(), 2u);
  EXPECT_EQ(plan.phases.at(0).objects[0].number, 0u);
  EXPECT_EQ(plan.phases.at(0).objects[1].number, 1u);
}

TEST(Planner, AnObjectThatIsUsedAtRandomIsLeftOut) {
  std::mt19937 random(2);
  Seen seen(4);
  const Object swept{0, 16'000}, hashed{20'000, 16'000};
  (void)seen.born(seen.site({1}), swept);
  (void)seen.born(seen.site({2}), hashed);
  for (int i = 0; i < 6; ++i) {
    forwards(swept, [&](PageNumber page) {
      seen.use(page);
      if (page % 4 == 0) seen.use(hashed.first + random() % hashed.pages);
    });
  }
  const Plan plan = planned(seen);
  ASSERT_EQ(plan.phases.at(0).objects.size(), 1u);
  EXPECT_EQ(plan.sites[plan.phases.at(0).objects[0].site], (SiteName{{1, 1}}));
  EXPECT_LT(plan.phases.at(0).foreseen, 90u);
  EXPECT_GE(plan.phases.at(0).objects[0].foreseen, 95u);
}

// Hints are of all objects: of the one that is swept six times each page has six uses, of the other one some 1.5.
TEST(Planner, HintsAreAlsoOfWhatCannotBeForeseen) {
  std::mt19937 random(2);
  Seen seen(4);
  const Object swept{0, 16'000}, hashed{20'000, 16'000};
  (void)seen.born(seen.site({1}), swept);
  (void)seen.born(seen.site({2}), hashed);
  (void)seen.born(seen.site({3}), {40'000, 1'000});  // it is not used
  for (int i = 0; i < 6; ++i) {
    forwards(swept, [&](PageNumber page) {
      seen.use(page);
      if (page % 4 == 0) seen.use(hashed.first + random() % hashed.pages);
    });
  }
  const auto hints = plan_hints(seen.profile(), "p");
  ASSERT_TRUE(hints) << hints.error().message();
  ASSERT_EQ(hints->phase().objects.size(), 2u);
  ASSERT_EQ(hints->accesses.size(), 2u);
  EXPECT_EQ(hints->plan.sites[hints->phase().objects[1].site], (SiteName{{1, 2}}));
  EXPECT_NEAR(static_cast<double>(hints->accesses[0]), 6 * 16'000, 6 * 1'600);
  EXPECT_NEAR(static_cast<double>(hints->accesses[1]), 6 * 4'000, 6 * 400);
}

TEST(Planner, WithoutAnOrderThereAreNoHints) {
  profile::Profile profile;
  profile.processes = {{}};
  const auto none = plan_hints(profile, "p");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kInvalidArgument);
}

TEST(Planner, NoiseLeavesThePlan) {
  std::mt19937 random(3);
  Seen seen(3);
  const Object object{0, 16'000};
  (void)seen.born(seen.site({1}), object);
  for (int i = 0; i < 6; ++i) {
    forwards(object, [&](PageNumber page) {
      seen.use(page);
      if (random() % 10 == 0) seen.use(random() % object.pages);
    });
  }
  const Plan plan = planned(seen);
  EXPECT_GE(plan.phases.at(0).foreseen, 80u);
  EXPECT_NE(plan.phases.at(0).round, 0u);
}

// What a program does before, with small objects alone, was taken for its round.
TEST(Planner, ALongBeginWithoutLargeObjectsIsDoneOnce) {
  Seen seen(3);
  forwards({100'000, 30'000}, [&](PageNumber page) { seen.use(page); });
  const Object object{0, 8192};
  (void)seen.born(seen.site({1}), object);
  for (int i = 0; i < 8; ++i) forwards(object, [&](PageNumber page) { seen.use(page); });
  const Plan plan = planned(seen);
  EXPECT_NEAR(plan.phases.at(0).round, 1024, 150);
  EXPECT_GE(plan.phases.at(0).once, 30'000u / 8);
  ASSERT_EQ(plan.phases.at(0).objects.size(), 1u);
  for (const auto& uses : plan.phases.at(0).objects[0].parts) EXPECT_FALSE(uses.empty());
}

// Objects that a damaged profile may tell of.
TEST(Planner, AnyObjectsAreSurvived) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 50; ++i) {
    Seen seen(0, 1);
    (void)seen.site({1, 2});
    forwards({0, 200}, [&](PageNumber page) { seen.use(page); });
    profile::Profile profile = seen.profile();
    for (int k = 0; k < 20; ++k) {
      const std::uint64_t first = random() >> random() % 64, bytes = (~first) & (random() >> random() % 64);
      profile::LargeObject object{static_cast<profile::SiteId>(random() % 3), first, bytes, random() % 30,
                                  random() % 3 * (random() % 30)};
      // Of some profiles all are such as there can be.
      if (i % 4 != 0) object.first %= profile::kMostObjectEnd;
      if (i % 4 != 0) object.bytes %= profile::kMostObjectEnd - object.first + 1;
      if (i % 4 != 0 && object.died != 0) object.died += object.born;
      profile.processes[0].objects.push_back(object);
    }
    const bool is_sound =
        std::ranges::all_of(profile.processes[0].objects, [](const auto& object) { return object.is_sound(); });
    EXPECT_EQ(profile::read_profile(encode(profile), "p").has_value(), is_sound);
    const auto plan = make_plan(profile, "p");
    EXPECT_TRUE(is_sound || (!plan && plan.error().why.find("section 7") != std::string::npos));
    EXPECT_TRUE(plan ? read_plan(encode(plan->plan), "p").has_value() : !plan.error().why.empty());
  }
}

}  // namespace
}  // namespace farheap::plan
