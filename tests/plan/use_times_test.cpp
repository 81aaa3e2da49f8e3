// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/use_times.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <random>

namespace farheap::plan {
namespace {

KnownUses known(double place, std::initializer_list<double> times, double pages = 0) {
  KnownUses one{place, {}};
  for (const double time : times) one.uses.push_back({time, pages});
  return one;
}

std::vector<double> times_at(const std::vector<KnownUses>& all, double place, const PlanTimes& times) {
  std::vector<double> found;
  for (const Use& use : uses_at(all, place, times)) found.push_back(use.time);
  return found;
}

void expect_times(const std::vector<double>& found, std::initializer_list<double> wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted.begin()[i], 1e-9) << i;
}

// ---- between parts

TEST(UsesAt, OfNothingAreNone) {
  EXPECT_TRUE(uses_at({}, 0.5, {10, 0}).empty());
  EXPECT_TRUE(times_at({known(0.2, {}), known(0.8, {})}, 0.5, {10, 5}).empty());
}

TEST(UsesAt, OfOnePartAreThatParts) { expect_times(times_at({known(0.3, {2, 7})}, 0.9, {10, 0}), {2, 7}); }

TEST(UsesAt, BetweenTwoPartsAreBetweenTheirs) {
  // Two sweeps: forwards, and backwards.
  const std::vector<KnownUses> all = {known(0.25, {10, 90}), known(0.75, {30, 70})};
  expect_times(times_at(all, 0.25, {100, 0}), {10, 90});
  expect_times(times_at(all, 0.5, {100, 0}), {20, 80});
  expect_times(times_at(all, 0.75, {100, 0}), {30, 70});
}

TEST(UsesAt, BeyondTheOuterPartsItGoesOn) {
  const std::vector<KnownUses> all = {known(0.25, {10, 90}), known(0.75, {30, 70})};
  expect_times(times_at(all, 0, {100, 0}), {0, 100});
  expect_times(times_at(all, 1, {100, 0}), {40, 60});
}

TEST(UsesAt, NoUseComesBeforeTheBeginOrAfterTheEnd) {
  const std::vector<KnownUses> all = {known(0.4, {2, 98}), known(0.6, {12, 88})};
  expect_times(times_at(all, 0, {100, 0}), {0, 100});
}

TEST(UsesAt, SweepsThatCrossAreInTheirOrder) {
  // Backwards from 40 and forwards from 10: at 0.5 they meet.
  const std::vector<KnownUses> all = {known(0, {10, 40}), known(1, {20, 50})};
  const std::vector<double> found = times_at(all, 0.3, {60, 0});
  EXPECT_TRUE(std::ranges::is_sorted(found));
  expect_times(found, {13, 43});
}

TEST(UsesAt, PartsAtOnePlaceAreTakenAsTheFirst) {
  expect_times(times_at({known(0.5, {10}), known(0.5, {20})}, 0.5, {30, 0}), {10});
}

TEST(UsesAt, HowLongAUseTakesLiesInBetweenAndIsNeverLessThanNothing) {
  const std::vector<KnownUses> all = {known(0.4, {10}, 100), known(0.6, {20}, 20)};
  EXPECT_NEAR(uses_at(all, 0.5, {50, 0})[0].pages, 60, 1e-9);
  EXPECT_EQ(uses_at(all, 1, {50, 0})[0].pages, 0);
}

// ---- where one part has more uses

TEST(UsesAt, AUseOfOnePartAloneStaysWithTheNearerHalf) {
  // The second part was used once more, at 50.
  const std::vector<KnownUses> all = {known(0, {10, 90}), known(1, {20, 50, 80})};
  expect_times(times_at(all, 0.25, {100, 0}), {12.5, 87.5});
  expect_times(times_at(all, 0.75, {100, 0}), {17.5, 50, 82.5});
  const std::vector<KnownUses> other = {known(0, {20, 50, 80}), known(1, {10, 90})};
  expect_times(times_at(other, 0.25, {100, 0}), {17.5, 50, 82.5});
  expect_times(times_at(other, 0.75, {100, 0}), {12.5, 87.5});
}

TEST(UsesAt, TheUnusedPartsHalfIsUnused) {
  const std::vector<KnownUses> all = {known(0, {}), known(1, {20, 50})};
  EXPECT_TRUE(times_at(all, 0.25, {100, 0}).empty());
  expect_times(times_at(all, 0.75, {100, 0}), {20, 50});
}

TEST(UsesAt, OfVeryManyUsesTheNearerPartsCount) {
  KnownUses many{1, {}};
  for (int i = 0; i < 300; ++i) many.uses.push_back({i / 3.0, 0});
  const std::vector<KnownUses> all = {known(0, {7}), many};
  expect_times(times_at(all, 0.25, {100, 0}), {7});
  EXPECT_EQ(times_at(all, 0.75, {100, 0}).size(), 300u);
}

// All ways to match, tried.
double least_cost(const std::vector<double>& few, const std::vector<double>& more, std::size_t i, std::size_t j) {
  if (i == few.size()) return 0;
  if (more.size() - j < few.size() - i) return 1e300;
  return std::min(std::abs(few[i] - more[j]) + least_cost(few, more, i + 1, j + 1), least_cost(few, more, i, j + 1));
}

// At the place of the part with fewer uses, only their partners are left, moved all the way: so what they are paired
// with is seen at the other end of a hair's breadth.
TEST(UsesAt, UsesAreMatchedWithTheNearestOfAllMatchings) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> few, more;
    for (unsigned i = random() % 4 + 1; i > 0; --i) few.push_back(random() % 100);
    for (unsigned i = static_cast<unsigned>(few.size()) + 1 + random() % 3; i > 0; --i) more.push_back(random() % 100);
    std::ranges::sort(few);
    std::ranges::sort(more);
    KnownUses one{0, {}}, other{1, {}};
    for (const double time : few) one.uses.push_back({time, 0});
    for (const double time : more) other.uses.push_back({time, 0});
    constexpr double kWeight = 0.25;
    const auto found = times_at({one, other}, kWeight, {1000, 0});
    ASSERT_EQ(found.size(), few.size());
    double cost = 0;
    for (std::size_t i = 0; i < few.size(); ++i) cost += std::abs(found[i] - few[i]) / kWeight;
    EXPECT_NEAR(cost, least_cost(few, more, 0, 0), 1e-6) << "round " << round;
  }
}

// ---- in a round

TEST(UsesAt, OnceAndInTheRoundAreTakenApart) {
  // Before 50 forwards, in the round of 100 backwards.
  const std::vector<KnownUses> all = {known(0, {10, 140}), known(1, {40, 60})};
  expect_times(times_at(all, 0.25, {50, 100}), {17.5, 145});  // the way from 140 to 60 is shorter over the begin
  const std::vector<KnownUses> near = {known(0, {10, 120}), known(1, {40, 80})};
  expect_times(times_at(near, 0.25, {50, 100}), {17.5, 110});
}

TEST(UsesAt, TheBeginOfARoundMayCutASweep) {
  // A sweep from 80 on, over the end of the round at 100, up to 20: in five parts.
  std::vector<KnownUses> all;
  for (int i = 0; i < 5; ++i) all.push_back(known((i + 0.5) / 5, {std::fmod(84 + 8.0 * i, 100)}));
  const PlanTimes times{0, 100};
  expect_times(times_at(all, 0, times), {80});
  expect_times(times_at(all, 0.45, times), {98});
  expect_times(times_at(all, 0.5, times), {0});
  expect_times(times_at(all, 0.55, times), {2});
  expect_times(times_at(all, 1, times), {20});
}

TEST(UsesAt, ASweepThatIsCutIsStillThatSweepWhereThereAreMore) {
  // Two sweeps a round: at 20 + 40 p, and at 90 + 20 p, which is cut by the end at 100.
  std::vector<KnownUses> all;
  for (int i = 0; i < 10; ++i) {
    const double place = (i + 0.5) / 10;
    std::vector<double> at = {20 + 40 * place, std::fmod(90 + 20 * place, 100)};
    std::ranges::sort(at);
    all.push_back(known(place, {at[0], at[1]}));
  }
  for (double place = 0; place <= 1; place += 0.01) {
    std::vector<double> wanted = {20 + 40 * place, std::fmod(90 + 20 * place, 100)};
    std::ranges::sort(wanted);
    const auto found = times_at(all, place, {0, 100});
    ASSERT_EQ(found.size(), 2u);
    for (int i = 0; i < 2; ++i) {
      const double off = std::abs(found[static_cast<std::size_t>(i)] - wanted[static_cast<std::size_t>(i)]);
      EXPECT_LT(std::min(off, 100 - off), 1e-6) << place << ", use " << i;
    }
  }
}

TEST(UsesAt, WhatIsBeforeTheRoundsBeginIsAtItsEnd) {
  const std::vector<KnownUses> all = {known(0.25, {52}), known(0.75, {62})};
  expect_times(times_at(all, 0, {50, 100}), {147});
}

TEST(UsesAt, WhereTheRoundsUsesAreNotAsManyTheyStayInIt) {
  const std::vector<KnownUses> all = {known(0.4, {52, 148}), known(0.6, {62})};
  for (const double time : times_at(all, 0, {50, 100})) {
    EXPECT_GE(time, 50);
    EXPECT_LE(time, 150);
  }
}

// What happens once must not come again in each round.
TEST(UsesAt, WhatIsDoneOnceIsOverBeforeTheRoundBegins) {
  const std::vector<KnownUses> all = {known(0.25, {48, 60}), known(0.75, {30, 80})};
  const std::vector<double> found = times_at(all, 0, {50, 100});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_LT(found[0], 50) << "it would be in the round";
}

// The middle of a use that begins last may lie behind the end.
TEST(UsesAt, TimesBehindTheEndAreSurvivedWithoutARound) {
  const std::vector<KnownUses> all = {known(0.25, {10, 101}), known(0.75, {30, 103})};
  for (const double time : times_at(all, 0.5, {100, 0})) {
    EXPECT_TRUE(std::isfinite(time));
    EXPECT_LE(time, 100);
  }
}

TEST(UsesAt, AnyTimesGiveTimesInOrderAndInTheirPart) {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    const PlanTimes times{static_cast<double>(random() % 100), static_cast<double>(random() % 3 * 40)};
    if (times.end() == 0) continue;
    std::vector<KnownUses> all;
    for (unsigned i = 0; i < random() % 6; ++i) {
      KnownUses one{random() % 100 / 100.0, {}};
      for (unsigned k = random() % 6; k > 0; --k) {
        one.uses.push_back({std::fmod(random() / 7.0, times.end()), static_cast<double>(random() % 50)});
      }
      std::ranges::sort(one.uses, {}, &Use::time);
      all.push_back(std::move(one));
    }
    std::ranges::sort(all, {}, &KnownUses::place);
    const auto found = uses_at(all, random() % 101 / 100.0, times);
    EXPECT_TRUE(std::ranges::is_sorted(found, {}, &Use::time));
    for (const Use& use : found) {
      EXPECT_TRUE(use.time >= 0 && use.time <= times.end()) << use.time << " of " << times.end();
      EXPECT_GE(use.pages, 0);
    }
  }
}

// ---- uses out of what was seen

std::vector<Use> joined(std::vector<std::uint32_t> seen, const Joining& joining) {
  const SeenPart part{0.5, std::move(seen)};
  return joined_uses(std::span(&part, 1), joining)[0].uses;
}

TEST(JoinedUses, WhatComesAgainSoonIsOneUse) {
  const std::vector<Use> uses = joined({10, 12, 14, 50, 52}, {.soon = 5, .longest = 20, .pages_a_time = 64});
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0].time, 12);  // the middle
  EXPECT_EQ(uses[0].pages, 4 * 64);
  EXPECT_EQ(uses[1].time, 51);
  EXPECT_EQ(uses[1].pages, 2 * 64);
}

TEST(JoinedUses, WhatGoesOnForLongIsUsedAgainAndAgain) {
  const std::vector<Use> uses = joined({10, 14, 18, 22, 100}, {.soon = 5, .longest = 10, .pages_a_time = 64});
  ASSERT_EQ(uses.size(), 5u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(uses[i].time, 10 + 4.0 * static_cast<double>(i));
    EXPECT_EQ(uses[i].pages, 0);
  }
}

TEST(JoinedUses, WithoutASoonEachTimeIsAUse) {
  const std::vector<Use> uses = joined({1, 2, 3}, {});
  ASSERT_EQ(uses.size(), 3u);
  EXPECT_EQ(uses[1].time, 2);
}

TEST(JoinedUses, HowLongAUseTakesIsTheMedianOfTheParts) {
  // Of one of five parts the end of the use was not seen.
  std::vector<SeenPart> parts;
  for (std::uint32_t i = 0; i < 5; ++i) parts.push_back({0.1 + 0.2 * i, {20 * i, 20 * i + 6}});
  parts[2].times.pop_back();
  const auto uses = joined_uses(parts, {.soon = 8, .longest = 24, .pages_a_time = 10});
  ASSERT_EQ(uses.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    ASSERT_EQ(uses[i].uses.size(), 1u);
    EXPECT_EQ(uses[i].uses[0].pages, 60) << i;
    EXPECT_EQ(uses[i].uses[0].time, 20 * static_cast<double>(i) + 3) << i;
  }
}

TEST(JoinedUses, PartsThatAreUsedOftenerTellNothingOfIt) {
  const std::vector<SeenPart> parts = {{0.1, {0, 4}}, {0.3, {2, 50, 70}}, {0.5, {4, 8}}, {0.7, {6, 55, 75}}};
  const auto uses = joined_uses(parts, {.soon = 5, .longest = 15, .pages_a_time = 1});
  EXPECT_EQ(uses[0].uses[0].pages, 4);
  EXPECT_EQ(uses[1].uses[0].pages, 0);
}

TEST(JoinedUses, OfNothingAreNone) {
  EXPECT_TRUE(joined_uses({}, {.soon = 5, .longest = 15, .pages_a_time = 1}).empty());
  EXPECT_TRUE(joined({}, {.soon = 5, .longest = 15, .pages_a_time = 1}).empty());
}

}  // namespace
}  // namespace farheap::plan
