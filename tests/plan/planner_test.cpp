// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs that are made up are seen as the sampler would see them, and planned. What the plan says of a larger run is
// held beside what that run does.
#include "plan/planner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "plan/planned_order.hpp"
#include "seen_program.hpp"

namespace farheap::plan {
namespace {

using pager::PageOrder;

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

// ---- a larger run

// Prepares its objects once, and goes through phases then: sweeps over some of them, side by side.
struct Program {
  struct Phase {
    std::vector<std::size_t> objects;
    bool forwards = true;
  };
  std::vector<std::uint64_t> sizes;  // in pages, of the small run
  std::vector<Phase> phases;

  explicit Program(std::mt19937& random) {
    for (unsigned i = 2 + random() % 3; i > 0; --i) sizes.push_back(2000 + random() % 4000);
    for (std::size_t i = 0; i < sizes.size() || phases.size() < 2; ++i) {
      Phase phase{{i % sizes.size()}, random() % 2 == 0};
      if (random() % 2 == 0) phase.objects.push_back((i + 1) % sizes.size());
      phases.push_back(phase);
    }
    // Two phases that are alike would be two rounds.
    if (sizes.size() == 2 && phases[0].objects.size() == phases[1].objects.size())
      phases[1].forwards = !phases[0].forwards;
  }
  [[nodiscard]] std::vector<Object> objects(std::uint64_t scale) const {
    std::vector<Object> all;
    std::uint64_t at = 64 * scale;
    for (const std::uint64_t size : sizes) {
      all.push_back({at, size * scale});
      at += (size * scale / 64 + 2) * 64;
    }
    return all;
  }
  static void prepare(const std::vector<Object>& all, const UsePage& use) {
    for (const Object& object : all) forwards(object, use);
  }
  void round(const std::vector<Object>& all, const UsePage& use) const {
    for (const Phase& phase : phases) {
      std::uint64_t steps = 0;
      for (const std::size_t one : phase.objects) steps = std::max(steps, all[one].pages);
      for (std::uint64_t i = 0; i < steps; ++i) {
        const double place =
            (static_cast<double>(phase.forwards ? i : steps - 1 - i) + 0.5) / static_cast<double>(steps);
        for (const std::size_t one : phase.objects) use(all[one].at(place));
      }
    }
  }
};

// When in the whole, from 0 to 1, each block comes to be used.
using Moments = std::map<std::uint32_t, std::vector<double>>;

Moments moments_of(const std::function<void(const UsePage&)>& run) {
  constexpr std::uint64_t kSame = 4 * PageOrder::kBlockPages;  // uses in between
  std::map<std::uint32_t, std::uint64_t> latest;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> begins;
  std::uint64_t now = 0;
  PageNumber before = ~PageNumber{0};
  run([&](PageNumber page) {
    if (page == before) return;
    before = page;
    const std::uint32_t block = PageOrder::block_of(page);
    const auto [found, is_new] = latest.try_emplace(block, now);
    if (is_new || now - found->second > kSame) begins.emplace_back(block, now);
    found->second = now++;
  });
  Moments all;
  for (const auto& [block, moment] : begins)
    all[block].push_back(static_cast<double>(moment) / static_cast<double>(now));
  return all;
}

Moments moments_in(const PageOrder& order, bool of_round) {
  Moments all;
  const auto visits = order.visits();
  const std::size_t round = order.has_round() ? order.round() : visits.size();
  const PageOrder::Moment first = of_round ? visits[round].first : 0;
  const PageOrder::Moment end = of_round            ? order.visit(visits.size()).first
                                : order.has_round() ? visits[round].first
                                                    : 0;
  for (std::size_t i = of_round ? round : 0; i < (of_round ? visits.size() : round); ++i) {
    all[visits[i].block].push_back(static_cast<double>(visits[i].first - first) / static_cast<double>(end - first));
  }
  return all;
}

// The share of what truly happens that is told within so much; the round may begin anywhere.
double share_right(const Moments& truth, const Moments& told, double within, double turned) {
  std::size_t right = 0, all = 0;
  for (const auto& [block, moments] : truth) {
    const auto found = told.find(block);
    for (const double moment : moments) {
      ++all;
      if (found == told.end()) continue;
      right += std::ranges::any_of(found->second, [&](double one) {
        const double off = one + turned - moment;
        return std::abs(off - std::round(off)) <= within;
      });
    }
  }
  return static_cast<double>(right) / static_cast<double>(all);
}

double share_right_anywhere(const Moments& truth, const Moments& told, double within) {
  double best = 0;
  for (double turned = 0; turned < 1; turned += 0.005) best = std::max(best, share_right(truth, told, within, turned));
  return best;
}

std::size_t count(const Moments& all) {
  std::size_t sum = 0;
  for (const auto& [block, moments] : all) sum += moments.size();
  return sum;
}

// ---- phases

// The sites of what its round uses, not only what is done before.
std::set<std::uint64_t> offsets_of(const Plan& plan, const PlannedPhase& phase) {
  std::set<std::uint64_t> offsets;
  for (const PlannedObject& object : phase.objects) {
    const auto in_round = std::ranges::count_if(
        object.parts, [&](const auto& uses) { return !uses.empty() && uses.back().time >= phase.once; });
    if (2 * static_cast<std::size_t>(in_round) > object.parts.size()) {
      offsets.insert(plan.sites[object.site][0].offset);
    }
  }
  return offsets;
}

TEST(Planner, AProgramThatRepeatsOneThingAfterAnotherHasAPhaseForEach) {
  Seen seen(4);
  const Object a{64, 8192}, b{10'000, 8192}, c{20'000, 16'384};
  std::uint64_t site = 0;
  for (const Object& object : {a, b, c}) (void)seen.born(seen.site({++site}), object);
  const UsePage use = [&](PageNumber page) { seen.use(page); };
  for (int round = 0; round < 12; ++round) forwards(a, use), forwards(b, use);
  for (int round = 0; round < 8; ++round) backwards(b, use), forwards(c, use);
  const Plan plan = planned(seen);
  ASSERT_EQ(plan.phases.size(), 2u);
  EXPECT_EQ(offsets_of(plan, plan.phases[0]), (std::set<std::uint64_t>{1, 2}));
  EXPECT_EQ(offsets_of(plan, plan.phases[1]), (std::set<std::uint64_t>{2, 3}));
  EXPECT_NEAR(plan.phases[0].round, 16'384 / 16, 60) << "one page in 16, about";
  EXPECT_NEAR(plan.phases[1].round, 24'576 / 16, 90);
  for (const PlannedPhase& phase : plan.phases) EXPECT_GE(phase.foreseen, 90u);
}

TEST(Planner, ALoopThatIsInterruptedIsOnePhase) {
  Seen seen(4);
  const Object a{64, 8192}, b{10'000, 8192}, other{20'000, 60'000};
  std::uint64_t site = 0;
  for (const Object& object : {a, b, other}) (void)seen.born(seen.site({++site}), object);
  const UsePage use = [&](PageNumber page) { seen.use(page); };
  for (int part = 0; part < 2; ++part) {
    for (int round = 0; round < 8; ++round) forwards(a, use), forwards(b, use);
    if (part == 0) forwards(other, use);
  }
  EXPECT_EQ(planned(seen).phases.size(), 1u);
}

TEST(Planner, TheSameObjectsInAnotherOrderAreAnotherPhase) {
  Seen seen(4);
  const Object a{64, 8192}, b{10'000, 8192};
  (void)seen.born(seen.site({1}), a);
  (void)seen.born(seen.site({2}), b);
  const UsePage use = [&](PageNumber page) { seen.use(page); };
  for (int round = 0; round < 8; ++round) forwards(a, use), forwards(b, use);
  for (int round = 0; round < 8; ++round) backwards(a, use), forwards(b, use);
  EXPECT_EQ(planned(seen).phases.size(), 2u);
}

TEST(Planner, WhatIsShortIsNoPhaseOfItsOwn) {
  Seen seen(4);
  const Object a{64, 16'384}, b{20'000, 1024};
  (void)seen.born(seen.site({1}), a);
  (void)seen.born(seen.site({2}), b);
  const UsePage use = [&](PageNumber page) { seen.use(page); };
  for (int round = 0; round < 12; ++round) forwards(a, use);
  for (int round = 0; round < 4; ++round) forwards(b, use);
  EXPECT_EQ(planned(seen).phases.size(), 1u);
}

// Loops of programs that chance made up, one after the other: each phase's order is that of its loop.
TEST(Planner, EachPhaseGoesAsItsLoopDoes) {
  std::mt19937 random(11);
  for (int i = 0; i < 8; ++i) {
    const Program programs[] = {Program(random), Program(random)};
    Seen seen(4);
    const UsePage use = [&](PageNumber page) { seen.use(page); };
    std::vector<std::vector<Object>> objects;
    std::uint64_t site = 0, shift = 0;
    for (const Program& program : programs) {
      objects.push_back(program.objects(1));
      for (Object& object : objects.back()) {
        object.first += shift;
        (void)seen.born(seen.site({++site}), object);
      }
      shift = objects.back().back().first + objects.back().back().pages + 64;
    }
    for (std::size_t k = 0; k < objects.size(); ++k) {
      std::uint64_t pages = 0;
      for (const Object& object : objects[k]) pages += object.pages;
      Program::prepare(objects[k], use);
      for (std::uint64_t used = 0; used < 200'000; used += pages) programs[k].round(objects[k], use);
    }
    const Plan plan = planned(seen);
    ASSERT_EQ(plan.phases.size(), 2u) << "program " << i;
    std::size_t first_site = 0;
    for (std::size_t k = 0; k < 2; ++k) {
      const PlannedPhase& phase = plan.phases[k];
      std::vector<LiveObject> live;
      for (std::uint32_t n = 0; n < phase.objects.size(); ++n) {
        const std::size_t one = plan.sites[phase.objects[n].site][0].offset - 1 - first_site;
        if (one >= objects[k].size()) continue;  // of the other loop, at its end or begin
        live.push_back({n, objects[k][one].first * kPage, objects[k][one].pages * kPage});
      }
      ASSERT_EQ(live.size(), objects[k].size()) << "program " << i;
      first_site += objects[k].size();
      const PageOrder order = order_of(phase, live);
      ASSERT_TRUE(order.has_round()) << "program " << i;
      const Moments truth = moments_of([&](const UsePage& each) { programs[k].round(objects[k], each); });
      EXPECT_GE(share_right_anywhere(truth, moments_in(order, true), 0.04), 0.85) << "program " << i << ", loop " << k;
    }
  }
}

TEST(Planner, ALargerRunGoesAsThePlanOfASmallOneSays) {
  std::mt19937 random(7);
  for (int i = 0; i < 12; ++i) {
    const Program program(random);
    Seen seen(4);
    const std::vector<Object> small = program.objects(1);
    for (std::size_t k = 0; k < small.size(); ++k) (void)seen.born(seen.site({k + 1}), small[k]);
    const UsePage use = [&](PageNumber page) { seen.use(page); };
    Program::prepare(small, use);
    for (int round = 0; round < 6; ++round) program.round(small, use);
    const Plan plan = planned(seen);
    ASSERT_NE(plan.phases.at(0).round, 0u) << "program " << i;
    EXPECT_EQ(plan.phases.at(0).objects.size(), small.size());

    for (const std::uint64_t scale : {1, 4}) {
      const std::vector<Object> objects = program.objects(scale);
      std::vector<LiveObject> live;
      for (std::uint32_t k = 0; k < plan.phases.at(0).objects.size(); ++k) {
        const auto one = static_cast<std::size_t>(plan.sites[plan.phases.at(0).objects[k].site][0].offset - 1);
        live.push_back({k, objects[one].first * kPage, objects[one].pages * kPage});
      }
      const PageOrder order = order_of(plan.phases.at(0), live);
      ASSERT_TRUE(order.has_round()) << "program " << i;
      const Moments truth = moments_of([&](const UsePage& each) { program.round(objects, each); });
      const Moments told = moments_in(order, true);
      constexpr double kWithin = 0.03;  // of the round
      EXPECT_GE(share_right_anywhere(truth, told, kWithin), 0.9) << "program " << i << ", size " << scale;
      EXPECT_NEAR(static_cast<double>(count(told)), static_cast<double>(count(truth)),
                  0.2 * static_cast<double>(count(truth)))
          << "program " << i << ", size " << scale;
    }
  }
}

}  // namespace
}  // namespace farheap::plan
