// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/round.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace farheap::plan::round_test {
namespace {

constexpr std::uint32_t kNear = 20;

// Uses of pages, one a moment; passing() is time in which none of them is used.
struct Program {
  std::vector<TimedUse> uses;
  std::uint32_t now = 0;
  void use(std::uint32_t page) { uses.push_back({now++, page}); }
  void forwards(std::uint32_t first, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) use(first + i);
  }
  void backwards(std::uint32_t first, std::uint32_t count) {
    for (std::uint32_t i = count; i-- > 0;) use(first + i);
  }
  void at_random(std::uint32_t first, std::uint32_t pages, std::uint32_t count, std::mt19937& random) {
    for (std::uint32_t i = 0; i < count; ++i) use(first + random() % pages);
  }
  void passing(std::uint32_t time) { now += time; }
  [[nodiscard]] Round round(std::uint32_t near = kNear) const { return find_round(uses, now, near); }
  [[nodiscard]] double share_repeated(std::uint32_t length, std::uint32_t near = kNear) const {
    const auto again = repeated(uses, length, near);
    return static_cast<double>(std::ranges::count(again, true)) / static_cast<double>(uses.size());
  }
};

// A whole round that repeats an earlier one, of those that are alike.
void expect_round(const Round& round, std::uint32_t length, std::uint32_t first_repeated, std::uint32_t end) {
  EXPECT_NEAR(round.length, length, 2);
  EXPECT_LE(round.begin, first_repeated + length / 4 + 2);
  EXPECT_GE(round.begin + length / 4 + 2, first_repeated);
  EXPECT_LE(round.begin + round.length, end);
  EXPECT_LE(round.end, end);
  EXPECT_GE(round.end + length / 4 + 2, end);
}

TEST(FindRound, SweepsAreRounds) {
  Program program;
  for (int i = 0; i < 5; ++i) program.forwards(0, 1000);
  expect_round(program.round(), 1000, 1000, 5000);
}

TEST(FindRound, WhatIsDoneOnceComesBeforeIt) {
  Program program;
  program.forwards(5000, 700);
  for (int i = 0; i < 5; ++i) program.forwards(0, 1000);
  expect_round(program.round(), 1000, 1700, 5700);
}

TEST(FindRound, WhatComesAfterItIsNotOfIt) {
  Program program;
  for (int i = 0; i < 5; ++i) program.forwards(0, 1000);
  program.forwards(5000, 2000);
  expect_round(program.round(), 1000, 1000, 5000);
}

TEST(FindRound, ThereAndBackIsOneRound) {
  Program program;
  for (int i = 0; i < 5; ++i) program.forwards(0, 500), program.backwards(0, 500);
  expect_round(program.round(), 1000, 1000, 5000);
}

TEST(FindRound, ASweepTwiceARoundIsNotTheRound) {
  // One array is used twice while the other one is used once.
  Program program;
  for (int i = 0; i < 6; ++i) {
    program.forwards(0, 300), program.forwards(1000, 500), program.forwards(0, 300);
    program.backwards(2000, 400);
  }
  expect_round(program.round(), 1500, 1500, 9000);
}

TEST(FindRound, TheShortestOfEquallyGoodOnesIsIt) {
  Program program;
  for (int i = 0; i < 24; ++i) program.forwards(0, 400);
  EXPECT_NEAR(program.round().length, 400, 2);
}

TEST(FindRound, TwoSweepsAreTooFew) {
  Program program;
  for (int i = 0; i < 2; ++i) program.forwards(0, 1000);
  EXPECT_EQ(program.round().length, 0u);
}

TEST(FindRound, RandomUseHasNone) {
  std::mt19937 random(1);
  Program program;
  program.at_random(0, 1000, 10'000, random);
  EXPECT_EQ(program.round().length, 0u);
}

TEST(FindRound, NothingAndLittleHaveNone) {
  EXPECT_EQ(find_round({}, 0, 1).length, 0u);
  EXPECT_EQ(find_round({}, 1000, 1).length, 0u);
  const TimedUse one{5, 1};
  EXPECT_EQ(find_round(std::span(&one, 1), 6, 1).length, 0u);
  EXPECT_EQ(find_round(std::span(&one, 1), 6, 0).length, 0u);
  const TimedUse same[] = {{0, 1}, {1, 1}, {2, 1}, {3, 1}};
  EXPECT_EQ(find_round(same, 4, 1).length, 0u) << "shorter than what is near";
}

TEST(FindRound, NoiseDoesNotHideIt) {
  std::mt19937 random(2);
  Program program;
  for (int i = 0; i < 8; ++i) {
    for (std::uint32_t page = 0; page < 1000; ++page) {
      program.use(page);
      if (page % 5 == 0) program.use(5000 + random() % 2000);
    }
  }
  expect_round(program.round(), 1200, 1200, 9600);
}

TEST(FindRound, RoundsThatAreALittleLongerOrShorterAreRounds) {
  std::mt19937 random(3);
  Program program;
  for (int i = 0; i < 10; ++i) {
    program.forwards(0, 1000);
    program.passing(random() % kNear);
  }
  EXPECT_NEAR(program.round().length, 1010, kNear);
}

TEST(FindRound, TimeInWhichNothingIsPlannedIsAPartOfTheRound) {
  Program program;
  for (int i = 0; i < 6; ++i) {
    program.forwards(0, 600);
    program.passing(400);
  }
  EXPECT_NEAR(program.round().length, 1000, 2);
}

// A stretch in which nothing is used at all was longer than the rounds, and was taken for them.
TEST(FindRound, ALongBeginWithoutUsesIsNotTheRound) {
  Program program;
  program.passing(8000);
  for (int i = 0; i < 5; ++i) program.forwards(0, 1000);
  expect_round(program.round(), 1000, 9000, 13'000);
}

TEST(FindRound, ALongEndWithoutUsesIsNotTheRound) {
  Program program;
  for (int i = 0; i < 5; ++i) program.forwards(0, 1000);
  program.passing(4000);
  const Round round = program.round();
  EXPECT_NEAR(round.length, 1000, 2);
  EXPECT_NEAR(round.begin, 1000, 260);
}

TEST(FindRound, AnyUsesGiveARoundWithinThem) {
  std::mt19937 random(4);
  for (int i = 0; i < 300; ++i) {
    Program program;
    const std::uint32_t pages = 1 + random() % 50;
    for (unsigned k = 0; k < random() % 20; ++k) {
      switch (random() % 4) {
        case 0: program.forwards(random() % 50, pages); break;
        case 1: program.backwards(random() % 50, pages); break;
        case 2: program.at_random(0, pages, random() % 100, random); break;
        default: program.passing(random() % 200);
      }
    }
    const Round round = program.round(random() % 10);
    EXPECT_LE(round.begin + round.length, program.now);
    EXPECT_LE(round.end, program.now);
    EXPECT_GE(round.end, round.begin);
  }
}

// ---- repeated

TEST(Repeated, IsWhatCameOneRoundBefore) {
  const TimedUse uses[] = {{0, 7}, {3, 8}, {10, 7}, {14, 8}, {25, 7}};
  EXPECT_EQ(repeated(uses, 10, 0), (std::vector<bool>{false, false, true, false, false}));
  EXPECT_EQ(repeated(uses, 10, 1), (std::vector<bool>{false, false, true, true, false}));
  EXPECT_EQ(repeated(uses, 10, 5), (std::vector<bool>{false, false, true, true, true}));
}

TEST(Repeated, AUseIsNotItsOwnRepetition) {
  const TimedUse uses[] = {{0, 7}, {100, 7}};
  EXPECT_EQ(repeated(uses, 5, 10), (std::vector<bool>{false, false}));
}

TEST(Repeated, OfSweepsIsAllButTheFirst) {
  Program program;
  for (int i = 0; i < 4; ++i) program.forwards(0, 1000);
  EXPECT_DOUBLE_EQ(program.share_repeated(1000, 0), 0.75);
  EXPECT_DOUBLE_EQ(program.share_repeated(500, 0), 0);
}

}  // namespace
}  // namespace farheap::plan::round_test
