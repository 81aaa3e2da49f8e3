// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/object_uses.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace farheap::plan::object_uses_test {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr Joining kNone{};

std::uint64_t middle(std::uint64_t page) { return page * kPage + kPage / 2; }

ObjectUses object_of(std::uint64_t pages) { return {.site = 0, .number = 0, .lives = {{0, pages * kPage, {}}}}; }

// Page i at 10 i + 5.
ObjectUses swept(std::uint64_t pages) {
  ObjectUses object = object_of(pages);
  for (std::uint64_t page = 0; page < pages; ++page)
    object.use(middle(page), static_cast<std::uint32_t>(10 * page + 5));
  return object;
}

std::vector<std::vector<std::uint32_t>> times_of(const std::vector<std::vector<PlannedUse>>& parts) {
  std::vector<std::vector<std::uint32_t>> times;
  for (const auto& uses : parts) {
    times.emplace_back();
    for (const PlannedUse& use : uses) times.back().push_back(use.time);
  }
  return times;
}

using Times = std::vector<std::vector<std::uint32_t>>;

// ---- lives

TEST(ObjectUses, TheLastLifeThatHasTheByteCounts) {
  ObjectUses object{.site = 0, .number = 0, .lives = {{0, 4 * kPage, {}}, {2 * kPage, 8 * kPage, {}}}};
  object.use(middle(1), 1);
  object.use(middle(3), 2);
  object.use(middle(9), 3);
  object.use(middle(3), 4);
  EXPECT_EQ(object.lives[0].uses.size(), 1u);
  EXPECT_EQ(object.lives[1].uses.size(), 2u);
  EXPECT_EQ(object.lives[1].uses.at(middle(3)), (std::vector<std::uint32_t>{2, 4}));
  EXPECT_EQ(object.uses(), 4u);
  EXPECT_EQ(object.bytes(), 8 * kPage);
}

TEST(ObjectUses, WhatIsInNoLifeIsPassedBy) {
  ObjectUses object = object_of(2);
  object.use(middle(2), 1);
  EXPECT_EQ(object.uses(), 0u);
}

// A use that takes 5000 times a million pages is longer than a plan can say.
TEST(ObjectUses, AUseLongerThanAPlanSaysIsTheLongestOne) {
  ObjectUses object = object_of(1);
  object.use(middle(0), 0);
  object.use(middle(0), 5000);
  const auto parts =
      object.parts({.once = 10'000, .round = 0}, {.soon = 6000, .longest = 6000, .pages_a_time = 1 << 20}, 1);
  ASSERT_EQ(parts.size(), 1u);
  ASSERT_EQ(parts[0].size(), 1u);
  EXPECT_EQ(parts[0][0].pages, ~std::uint32_t{0});
}

// ---- what is foreseen

double told(const ObjectUses::Foreseen& foreseen) { return foreseen.uses > 0 ? foreseen.told / foreseen.uses : 0; }

TEST(ObjectUses, WhatIsUsedAllTheTimeIsToldByChance) {
  // Each of ten pages every ten moments, in an order of chance: told within ten, and worth nothing.
  std::mt19937 random(3);
  ObjectUses object = object_of(10);
  std::vector<std::uint64_t> order(10);
  std::iota(order.begin(), order.end(), 0);
  for (std::uint32_t now = 0; now < 1000; ++now) {
    if (now % 10 == 0) std::ranges::shuffle(order, random);
    object.use(middle(order[now % 10]), now);
  }
  const ObjectUses::Foreseen foreseen = object.foreseen({.once = 1000, .round = 0}, 10, {});
  EXPECT_GT(told(foreseen), 0.9);
  EXPECT_GT(foreseen.by_chance, 0.8 * foreseen.uses);
}

TEST(ObjectUses, OfASweepChanceTellsLittle) {
  const ObjectUses::Foreseen foreseen = swept(100).foreseen({.once = 1000, .round = 0}, 10, {});
  EXPECT_LT(foreseen.by_chance, 0.03 * foreseen.uses);
  EXPECT_DOUBLE_EQ(foreseen.share(), 1);
  EXPECT_DOUBLE_EQ(ObjectUses::Foreseen{}.share(), 0);
}

TEST(ObjectUses, OfASweepAllIsForeseen) {
  EXPECT_DOUBLE_EQ(told(swept(10).foreseen({.once = 100, .round = 0}, 1, {})), 1);
  EXPECT_DOUBLE_EQ(told(object_of(10).foreseen({.once = 100, .round = 0}, 0, {})), 0);
}

TEST(ObjectUses, OfTwoPagesOneTellsTheOther) {
  ObjectUses object = object_of(2);
  object.use(middle(0), 10);
  object.use(middle(1), 30);
  EXPECT_DOUBLE_EQ(told(object.foreseen({.once = 100, .round = 0}, 19, {})), 0);
  EXPECT_DOUBLE_EQ(told(object.foreseen({.once = 100, .round = 0}, 20, {})), 1);
}

TEST(ObjectUses, APageAloneIsNotToldByItself) {
  ObjectUses object = object_of(1);
  object.use(middle(0), 10);
  EXPECT_DOUBLE_EQ(told(object.foreseen({.once = 100, .round = 0}, 50, {})), 0);
}

TEST(ObjectUses, WhatIsUsedOneMoreTimeThanItsNeighboursIsNotForeseen) {
  ObjectUses object = swept(10);
  object.use(middle(4), 95);
  EXPECT_DOUBLE_EQ(told(object.foreseen({.once = 100, .round = 0}, 1, {})), 10.0 / 11);
}

TEST(ObjectUses, OfRandomUseLittleIsForeseen) {
  std::mt19937 random(1);
  ObjectUses object = object_of(1000);
  for (std::uint32_t now = 0; now < 4000; ++now) object.use(middle(random() % 1000), now);
  EXPECT_LT(told(object.foreseen({.once = 4000, .round = 0}, 60, {})), 0.3);
}

TEST(ObjectUses, WhatTheRoundBeforeTellsIsForeseen) {
  // Ten pages in a shuffled order, which is the same in each of four rounds; the first one of them tells nothing.
  std::vector<std::uint64_t> order(10);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(5));
  ObjectUses object = object_of(10);
  std::uint32_t now = 0;
  for (int round = 0; round < 4; ++round) {
    for (const std::uint64_t page : order) object.use(middle(page), now), now += 100;
  }
  const PlanTimes all{.once = static_cast<double>(now), .round = 0};
  EXPECT_LT(told(object.foreseen(all, 1, {})), 0.1);
  EXPECT_DOUBLE_EQ(told(object.foreseen(all, 1, {.begin = 1000, .length = 1000, .end = 4000})), 0.75);
  EXPECT_DOUBLE_EQ(told(object.foreseen(all, 1, {.begin = 1000, .length = 1000, .end = 3000})), 0.5)
      << "the last is not of it";
}

// ---- how sure it is

TEST(ObjectUses, ASweepHasNoErrors) {
  const std::vector<double> errors = swept(10).errors({.once = 100, .round = 0}, kNone);
  ASSERT_EQ(errors.size(), 8u);  // of those that have one on either side
  for (const double error : errors) EXPECT_NEAR(error, 0, 1e-9);
}

TEST(ObjectUses, APageThatComesLateIsAnErrorOfItAndHalfOfItOfThoseBesideIt) {
  ObjectUses object = object_of(5);
  for (const std::uint32_t page : {0u, 1u, 2u, 3u, 4u}) object.use(middle(page), page == 2 ? 26 : 10 * page);
  const std::vector<double> errors = object.errors({.once = 100, .round = 0}, kNone);
  ASSERT_EQ(errors.size(), 3u);
  EXPECT_NEAR(errors[0], 3, 1e-9);
  EXPECT_NEAR(errors[1], 6, 1e-9);
  EXPECT_NEAR(errors[2], 3, 1e-9);
}

TEST(ObjectUses, FewPagesTellNoErrors) {
  EXPECT_TRUE(swept(2).errors({.once = 100, .round = 0}, kNone).empty());
  EXPECT_TRUE(object_of(3).errors({.once = 100, .round = 0}, kNone).empty());
}

// ---- parts

TEST(ObjectUses, PartsAreThePagesOfASweep) {
  EXPECT_EQ(times_of(swept(4).parts({.once = 40, .round = 0}, kNone, 100)), (Times{{5}, {15}, {25}, {35}}));
}

TEST(ObjectUses, FewerPartsLieBetweenThePages) {
  EXPECT_EQ(times_of(swept(8).parts({.once = 80, .round = 0}, kNone, 4)), (Times{{10}, {30}, {50}, {70}}));
}

TEST(ObjectUses, WhatComesLaterThanThePlansTimesIsNotInIt) {
  EXPECT_EQ(times_of(swept(4).parts({.once = 20, .round = 0}, kNone, 100)), (Times{{5}, {15}, {}, {}}));
}

TEST(ObjectUses, LivesFollowEachOther) {
  // Allocated anew, and then half as large: forwards, and then backwards.
  ObjectUses object{.site = 0, .number = 0, .lives = {{0, 4 * kPage, {}}, {8 * kPage, 2 * kPage, {}}}};
  for (const std::uint64_t page : {0, 1, 2, 3}) object.use(middle(page), static_cast<std::uint32_t>(10 * page));
  object.use(middle(9), 50);
  object.use(middle(8), 70);
  // Of the second life the places of four parts are an eighth and three eighths of it, and so on.
  EXPECT_EQ(times_of(object.parts({.once = 100, .round = 0}, kNone, 100)),
            (Times{{0, 75}, {10, 65}, {20, 55}, {30, 45}}));
}

TEST(ObjectUses, UnusedLivesTellNothing) {
  ObjectUses object{.site = 0, .number = 0, .lives = {{0, 4 * kPage, {}}, {8 * kPage, 0, {}}, {9 * kPage, kPage, {}}}};
  for (const std::uint64_t page : {0, 1, 2, 3}) object.use(middle(page), static_cast<std::uint32_t>(10 * page));
  EXPECT_EQ(times_of(object.parts({.once = 100, .round = 0}, kNone, 100)), (Times{{0}, {10}, {20}, {30}}));
}

TEST(ObjectUses, UsesThatTakeAWhileAreAtTheirMiddles) {
  ObjectUses object = object_of(3);
  for (const std::uint32_t page : {0u, 1u, 2u}) {
    object.use(middle(page), 20 * page);
    object.use(middle(page), 20 * page + 4);
  }
  const auto parts = object.parts({.once = 100, .round = 0}, {.soon = 5, .longest = 15, .pages_a_time = 64}, 100);
  EXPECT_EQ(parts, (std::vector<std::vector<PlannedUse>>{{{2, 256}}, {{22, 256}}, {{42, 256}}}));
}

// The middles of uses that began last lay behind the end: their times were no numbers.
TEST(ObjectUses, UsesThatBeginLastAreBeforeTheEnd) {
  ObjectUses object = object_of(5);
  const std::vector<std::vector<std::uint32_t>> seen = {{90, 98}, {91, 99}, {92, 99}, {98}, {99}};
  for (std::size_t page = 0; page < seen.size(); ++page) {
    for (const std::uint32_t time : seen[page]) object.use(middle(page), time);
  }
  const PlanTimes times{.once = 100, .round = 0};
  const Joining joining{.soon = 10, .longest = 30, .pages_a_time = 1};
  for (const auto& uses : times_of(object.parts(times, joining, 100))) {
    ASSERT_EQ(uses.size(), 1u);
    EXPECT_TRUE(uses[0] >= 90 && uses[0] <= 100) << uses[0];
  }
  for (const double error : object.errors(times, joining)) EXPECT_LT(error, 10);
}

TEST(ObjectUses, AnyUsesGivePartsThatAPlanMayHave) {
  std::mt19937 random(6);
  for (int i = 0; i < 300; ++i) {
    const PlanTimes times{.once = static_cast<double>(1 + random() % 200),
                          .round = static_cast<double>(random() % 2 * 150)};
    ObjectUses object = object_of(1 + random() % 30);
    const auto end = static_cast<std::uint32_t>(times.end());
    for (std::uint32_t now = 0; now < end + 20; ++now) {
      if (random() % 3 != 0) object.use(middle(random() % (object.bytes() / kPage)), now);
    }
    const Joining joining{
        .soon = random() % 20 / 1.0, .longest = random() % 60 / 1.0, .pages_a_time = random() % 8 / 2.0};
    for (const auto& uses : times_of(object.parts(times, joining, 1 + random() % 40))) {
      EXPECT_TRUE(std::ranges::is_sorted(uses));
      EXPECT_TRUE(uses.empty() || uses.back() <= end) << uses.back() << " of " << end;
    }
    const double share = object.foreseen(times, random() % 10, {}).share();
    EXPECT_TRUE(share >= 0 && share <= 1);
  }
}

}  // namespace
}  // namespace farheap::plan::object_uses_test
