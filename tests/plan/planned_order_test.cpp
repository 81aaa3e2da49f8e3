// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/planned_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace farheap::plan::planned_order_test {
namespace {

using pager::PageOrder;

constexpr std::uint64_t kPage = 4096, kBlock = PageOrder::kBlockPages;
constexpr std::uint64_t kBlockBytes = kBlock * kPage;

// One use of each part, in steps from `first` on.
PlannedObject swept(std::uint32_t parts, std::int64_t first, std::int64_t step, std::uint32_t pages = 0) {
  PlannedObject object;
  for (std::uint32_t i = 0; i < parts; ++i) {
    object.parts.push_back({{static_cast<std::uint32_t>(first + step * std::int64_t{i}), pages}});
  }
  return object;
}

PlannedPhase phase_of(std::vector<PlannedObject> objects, std::uint32_t once, std::uint32_t round = 0) {
  PlannedPhase phase;
  phase.objects = std::move(objects);
  phase.once = once, phase.round = round;
  return phase;
}

std::vector<std::uint32_t> blocks_of(const PageOrder& order) {
  std::vector<std::uint32_t> blocks;
  for (const auto& visit : order.visits()) blocks.push_back(visit.block);
  return blocks;
}

std::vector<std::uint32_t> from_to(std::uint32_t first, std::uint32_t last) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = std::min(first, last); i <= std::max(first, last); ++i) all.push_back(i);
  if (first > last) std::ranges::reverse(all);
  return all;
}

// What PageOrder::finish() requires, and what a visit is.
void expect_sound(const PageOrder& order) {
  const auto visits = order.visits();
  const std::size_t round = order.has_round() ? order.round() : visits.size();
  ASSERT_LE(round, visits.size());
  for (std::size_t i = 0; i < visits.size(); ++i) {
    EXPECT_LE(visits[i].first, visits[i].last) << i;
    EXPECT_LT(visits[i].first_page, kBlock);
    if (i != 0 && i != round) {
      EXPECT_LE(visits[i - 1].first, visits[i].first) << i;
    }
    if (i < round && round < visits.size()) {
      EXPECT_LT(visits[i].last, visits[round].first) << i;
    }
  }
  if (!order.has_round()) return;
  ASSERT_LT(round, visits.size());
  const auto again = order.visit(round + (visits.size() - round));
  EXPECT_EQ(again.block, visits[round].block);
  for (std::size_t i = round; i < visits.size(); ++i) EXPECT_LT(visits[i].last, again.first) << i;
}

// ---- without a round

TEST(PlannedOrder, OfNothingIsEmpty) {
  const PageOrder order = order_of(phase_of({swept(4, 5, 10)}, 40), {});
  EXPECT_TRUE(order.visits().empty());
  EXPECT_FALSE(order.has_round());
  const LiveObject unused{.object = 0, .first = 0, .bytes = kBlockBytes};
  EXPECT_TRUE(order_of(phase_of({PlannedObject{}}, 40), std::span(&unused, 1)).visits().empty());
}

TEST(PlannedOrder, ASweepGoesThroughTheBlocksOfAnObjectOfAnySize) {
  for (const std::uint32_t blocks : {1u, 4u, 8u, 32u, 1000u}) {
    const LiveObject live{.object = 0, .first = 10 * kBlockBytes, .bytes = blocks * kBlockBytes};
    const PageOrder order = order_of(phase_of({swept(4, 5, 10)}, 40), std::span(&live, 1));
    expect_sound(order);
    EXPECT_EQ(blocks_of(order), from_to(10, 9 + blocks));
    EXPECT_FALSE(order.has_round());
    for (std::size_t i = 0; i < order.visits().size(); ++i) {
      EXPECT_EQ(order.visits()[i].first, kBlock * i);
      EXPECT_GE(order.visits()[i].last, kBlock * (i + 1) - 1);
      EXPECT_LT(order.visits()[i].last, kBlock * (i + 2));
      EXPECT_EQ(order.visits()[i].first_page, 0u);
    }
  }
}

TEST(PlannedOrder, BackwardsItBeginsAtTheLastPageOfTheLastBlock) {
  const LiveObject live{.object = 0, .first = 0, .bytes = 8 * kBlockBytes};
  const PageOrder order = order_of(phase_of({swept(4, 35, -10)}, 40), std::span(&live, 1));
  expect_sound(order);
  EXPECT_EQ(blocks_of(order), from_to(7, 0));
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(order.visits()[i].first, kBlock * i);
  for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(order.visits()[i].first_page, kBlock - 1) << i;
}

TEST(PlannedOrder, SweepsOneBehindTheOtherAndSideBySide) {
  const std::vector<LiveObject> live = {{.object = 0, .first = 0, .bytes = 4 * kBlockBytes},
                                        {.object = 1, .first = 100 * kBlockBytes, .bytes = 4 * kBlockBytes}};
  const PageOrder behind = order_of(phase_of({swept(4, 5, 10), swept(4, 45, 10)}, 80), live);
  expect_sound(behind);
  EXPECT_EQ(blocks_of(behind), (std::vector<std::uint32_t>{0, 1, 2, 3, 100, 101, 102, 103}));
  const PageOrder beside = order_of(phase_of({swept(4, 5, 20), swept(4, 6, 20)}, 80), live);
  expect_sound(beside);
  EXPECT_EQ(blocks_of(beside), (std::vector<std::uint32_t>{0, 100, 1, 101, 2, 102, 3, 103}));
  // What goes on side by side is in use until both have passed.
  EXPECT_GE(beside.visits()[0].last, beside.visits()[1].first);
}

TEST(PlannedOrder, OfTwoObjectsTheLargerOneIsPassedFaster) {
  // Side by side, four blocks beside sixteen.
  const std::vector<LiveObject> live = {{.object = 0, .first = 0, .bytes = 4 * kBlockBytes},
                                        {.object = 1, .first = 100 * kBlockBytes, .bytes = 16 * kBlockBytes}};
  const PageOrder order = order_of(phase_of({swept(8, 5, 10), swept(8, 5, 10)}, 80), live);
  expect_sound(order);
  std::vector<std::uint32_t> wanted;
  for (std::uint32_t i = 0; i < 4; ++i) {
    wanted.push_back(i);
    for (std::uint32_t k = 0; k < 4; ++k) wanted.push_back(100 + 4 * i + k);
  }
  EXPECT_EQ(blocks_of(order), wanted);
}

TEST(PlannedOrder, AnObjectInTheMiddleOfBlocksHasThePagesThatItHas) {
  // From page 32 of block 0 to page 15 of block 2.
  const LiveObject live{.object = 0, .first = 32 * kPage, .bytes = (32 + 64 + 16) * kPage};
  const PageOrder forwards = order_of(phase_of({swept(7, 5, 10)}, 70), std::span(&live, 1));
  expect_sound(forwards);
  ASSERT_EQ(blocks_of(forwards), from_to(0, 2));
  EXPECT_EQ(forwards.visits()[0].first_page, 32u);
  EXPECT_EQ(forwards.visits()[1].first, 32u);
  EXPECT_EQ(forwards.visits()[2].first, 96u);
  const PageOrder backwards = order_of(phase_of({swept(7, 65, -10)}, 70), std::span(&live, 1));
  expect_sound(backwards);
  ASSERT_EQ(blocks_of(backwards), from_to(2, 0));
  EXPECT_EQ(backwards.visits()[0].first_page, 15u);
  EXPECT_EQ(backwards.visits()[1].first_page, 63u);
}

TEST(PlannedOrder, BytesThatAreNotWholePagesAreInTheirBlocks) {
  const LiveObject live{.object = 0, .first = kBlockBytes - 16, .bytes = 32};
  const PageOrder order = order_of(phase_of({swept(1, 5, 1)}, 10), std::span(&live, 1));
  expect_sound(order);
  EXPECT_EQ(blocks_of(order), from_to(0, 1));
  EXPECT_EQ(order.visits()[0].first_page, kBlock - 1);
}

TEST(PlannedOrder, ABlockOfTwoObjectsIsVisitedOnceIfTheyAreUsedTogether) {
  const std::vector<LiveObject> live = {{.object = 0, .first = 0, .bytes = kBlockBytes / 2},
                                        {.object = 1, .first = kBlockBytes / 2, .bytes = kBlockBytes / 2}};
  PlannedPhase phase = phase_of({swept(1, 10, 1), swept(1, 14, 1)}, 100);
  phase.window = 5;
  EXPECT_EQ(blocks_of(order_of(phase, live)), (std::vector<std::uint32_t>{0}));
  phase.window = 3;
  const PageOrder twice = order_of(phase, live);
  expect_sound(twice);
  EXPECT_EQ(blocks_of(twice), (std::vector<std::uint32_t>{0, 0}));
  EXPECT_EQ(twice.visits()[0].next, 1u);
}

TEST(PlannedOrder, AUseThatTakesAWhileBeginsEarlierAndEndsLater) {
  const LiveObject live{.object = 0, .first = 0, .bytes = 8 * kBlockBytes};
  const PageOrder brief = order_of(phase_of({swept(8, 5, 10)}, 80), std::span(&live, 1));
  const PageOrder lasting = order_of(phase_of({swept(8, 5, 10, 128)}, 80), std::span(&live, 1));
  expect_sound(lasting);
  EXPECT_EQ(blocks_of(lasting), from_to(0, 7));
  EXPECT_EQ(lasting.visits()[4].first, brief.visits()[4].first - 64);
  EXPECT_EQ(lasting.visits()[4].last, brief.visits()[4].last + 64);
  EXPECT_EQ(lasting.visits()[0].first, 0u);
  EXPECT_EQ(lasting.visits()[7].last, 8 * kBlock - 1) << "not behind the end";
}

TEST(PlannedOrder, ItsGapIsWhatMayGoOnUnseenOrIsUnsure) {
  const LiveObject live{.object = 0, .first = 0, .bytes = 8 * kBlockBytes};
  PlannedPhase phase = phase_of({swept(8, 5, 10)}, 80);
  phase.window_pages = 100;
  EXPECT_EQ(order_of(phase, std::span(&live, 1)).gap(), 100u);
  phase.unsure = 20;  // a quarter of all
  EXPECT_EQ(order_of(phase, std::span(&live, 1)).gap(), 2 * kBlock);
}

// ---- with one

TEST(PlannedOrder, TheRoundGoesOnForEver) {
  // Once forwards; then, again and again, backwards.
  PlannedObject object;
  for (std::uint32_t i = 0; i < 8; ++i) object.parts.push_back({{10 * i + 5, 0}, {90 + 75 - 10 * i, 0}});
  const LiveObject live{.object = 0, .first = 0, .bytes = 32 * kBlockBytes};
  const PageOrder order = order_of(phase_of({object}, 80, 100), std::span(&live, 1));
  expect_sound(order);
  ASSERT_TRUE(order.has_round());
  ASSERT_EQ(order.round(), 32u);
  ASSERT_EQ(order.visits().size(), 64u);
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(order.visit(i).block, i);
  for (std::uint64_t round = 0; round < 5; ++round) {
    for (std::uint32_t i = 0; i < 32; ++i) {
      const auto visit = order.visit(32 + 32 * round + i);
      EXPECT_EQ(visit.block, 31 - i);
      EXPECT_EQ(visit.first, kBlock * (32 + 32 * round + i));
    }
  }
}

TEST(PlannedOrder, ASweepThatTheBeginOfARoundCutsGoesOnBehindIt) {
  // From 40 of 80 on, over the end, back to 40.
  PlannedObject object;
  for (std::uint32_t i = 0; i < 8; ++i) object.parts.push_back({{(45 + 10 * i) % 80, 0}});
  const LiveObject live{.object = 0, .first = 0, .bytes = 16 * kBlockBytes};
  const PageOrder order = order_of(phase_of({object}, 0, 80), std::span(&live, 1));
  expect_sound(order);
  ASSERT_TRUE(order.has_round());
  EXPECT_EQ(order.round(), 0u);
  std::vector<std::uint32_t> wanted = from_to(8, 15);
  for (const std::uint32_t one : from_to(0, 7)) wanted.push_back(one);
  EXPECT_EQ(blocks_of(order), wanted);
}

// The first block of a sweep that goes down to the begin of the round was visited in each round, too.
TEST(PlannedOrder, WhatIsDoneOnceDoesNotComeAgain) {
  PlannedObject once = swept(4, 35, -10), again = swept(4, 45, 10);
  const std::vector<LiveObject> live = {{.object = 0, .first = 0, .bytes = 64 * kBlockBytes},
                                        {.object = 1, .first = 100 * kBlockBytes, .bytes = 4 * kBlockBytes}};
  const PageOrder order = order_of(phase_of({once, again}, 40, 40), live);
  expect_sound(order);
  ASSERT_TRUE(order.has_round());
  for (std::size_t i = order.round(); i < order.visits().size(); ++i) EXPECT_GE(order.visits()[i].block, 100u);
}

TEST(PlannedOrder, WithoutUsesInTheRoundThereIsNone) {
  const LiveObject live{.object = 0, .first = 0, .bytes = 4 * kBlockBytes};
  const PageOrder order = order_of(phase_of({swept(4, 5, 10)}, 40, 40), std::span(&live, 1));
  expect_sound(order);
  EXPECT_FALSE(order.has_round());
  EXPECT_EQ(order.visits().size(), 4u);
}

// A phase may say so, though none is made so: these visits ended before they began.
TEST(PlannedOrder, WithoutARoundUsesAtTheEndAreBeforeIt) {
  const LiveObject live{.object = 0, .first = 0, .bytes = 4 * kBlockBytes};
  for (const std::uint32_t once : {0u, 40u}) {
    const PageOrder order = order_of(phase_of({swept(4, once, 0)}, once), std::span(&live, 1));
    expect_sound(order);
    EXPECT_EQ(order.visits().size(), 4u);
  }
}

TEST(PlannedOrder, AnyPlanGivesASoundOrder) {
  std::mt19937 random(1);
  for (int i = 0; i < 400; ++i) {
    PlannedPhase phase = phase_of({}, random() % 200, random() % 2 * (1 + random() % 200));
    phase.window = random() % 10, phase.window_pages = random() % 300, phase.unsure = random() % 30;
    std::vector<LiveObject> live;
    std::set<std::uint32_t> blocks;
    for (std::uint32_t k = 0; k <= random() % 4; ++k) {
      PlannedObject object;
      object.parts.resize(random() % 9);
      for (auto& uses : object.parts) {
        for (unsigned u = random() % 4; u > 0; --u) {
          uses.push_back({static_cast<std::uint32_t>(random() % (phase.once + phase.round + 1)),
                          static_cast<std::uint32_t>(random() % 3 * 100)});
        }
        std::ranges::sort(uses, {}, &PlannedUse::time);
      }
      phase.objects.push_back(object);
      live.push_back({.object = k,
                      .first = random() % 100 * 16 * kPage + random() % 5,
                      .bytes = 1 + random() % (40 * kBlockBytes)});
      for (std::uint64_t at = live.back().first / kBlockBytes; at * kBlockBytes < live.back().first + live.back().bytes;
           ++at) {
        blocks.insert(static_cast<std::uint32_t>(at));
      }
    }
    ASSERT_TRUE(read_plan(encode({.sites = {{}}, .phases = {phase}}), "p"));
    const PageOrder order = order_of(phase, live);
    expect_sound(order);
    for (const auto& visit : order.visits()) EXPECT_TRUE(blocks.contains(visit.block));
    if (HasFailure()) FAIL() << "phase " << i;
  }
}

}  // namespace
}  // namespace farheap::plan::planned_order_test
