// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/room.hpp"

#include <gtest/gtest.h>

namespace farheap::pager {
namespace {

class Said final : public Budget {
 public:
  std::uint64_t page_limit(std::uint64_t resident, std::uint64_t coming) override {
    resident_asked = resident;
    coming_asked = coming;
    return limit;
  }
  std::uint64_t limit = 100'000;
  std::uint64_t resident_asked = 0, coming_asked = 0;
};

class RoomTest : public ::testing::Test {
 protected:
  RoomTest() { room_.refresh(); }
  Said budget_;
  Room room_{budget_};
};

TEST_F(RoomTest, TheBudgetHearsOfWhatIsInMemoryAndOfWhatWillCome) {
  room_.came(500);
  room_.announce(300);
  room_.refresh();
  EXPECT_EQ(budget_.resident_asked, 500u);
  EXPECT_EQ(budget_.coming_asked, 300 + 2 * room_.reserve());
}

TEST_F(RoomTest, ABudgetOfNothingLeavesTheLeastThatAProgramCanRunIn) {
  budget_.limit = 0;
  room_.refresh();
  EXPECT_EQ(room_.limit(), Room::kLeastLimit);
}

TEST_F(RoomTest, NothingIsFreeOnceTheLimitHasFallenBelowWhatIsInMemory) {
  room_.came(1000);
  EXPECT_EQ(room_.free(), 99'000u);
  EXPECT_FALSE(room_.lacks(99'000));
  EXPECT_TRUE(room_.lacks(99'001));
  budget_.limit = 500;
  room_.refresh();
  EXPECT_EQ(room_.free(), 0u);
  EXPECT_TRUE(room_.lacks(0));
  room_.went(600);
  EXPECT_EQ(room_.free(), 100u);
}

TEST_F(RoomTest, ARoundBeginsBelowTheReserveAndBringsOutTwiceAsMuch) {
  const std::uint64_t reserve = room_.reserve();
  room_.came(100'000 - reserve);
  EXPECT_FALSE(room_.lacks_reserve());
  EXPECT_EQ(room_.excess(), 0u);
  room_.came(1);
  EXPECT_TRUE(room_.lacks_reserve());
  EXPECT_EQ(room_.excess(), reserve + 1);
}

TEST_F(RoomTest, WhatIsBeingWrittenNeedNotLeaveASecondTime) {
  room_.came(100'000);
  const std::uint64_t excess = room_.excess();
  room_.will_leave(excess);
  EXPECT_EQ(room_.excess(), 0u);
  room_.has_left(20);
  EXPECT_EQ(room_.excess(), 0u);
  EXPECT_EQ(room_.resident(), 99'980u);
  EXPECT_EQ(room_.leaving(), excess - 20);
  room_.stays(excess - 20);
  EXPECT_EQ(room_.excess(), excess - 20);
}

TEST_F(RoomTest, WhereSomebodyWaitsForASlowStoreAsMuchAgainSetsOutUpToASixteenthOfMemory) {
  budget_.limit = 3200;
  room_.refresh();
  room_.came(3200);
  const std::uint64_t excess = room_.excess();
  ASSERT_EQ(excess, 2 * room_.reserve());
  room_.will_leave(excess);
  EXPECT_EQ(room_.excess(), 0u);
  room_.begin_wait();
  EXPECT_EQ(room_.excess(), excess);
  room_.begin_search(excess);
  EXPECT_EQ(room_.excess(), excess);
  room_.will_leave(2 * excess);  // more than a sixteenth is on its way
  EXPECT_EQ(room_.excess(), 0u);
  room_.end_wait();
}

TEST_F(RoomTest, WhatOneEvictorLooksForTheOthersLeaveToIt) {
  room_.came(100'000);
  const std::uint64_t excess = room_.excess();
  room_.begin_search(100);
  EXPECT_EQ(room_.excess(), excess - 100);
  room_.begin_search(excess - 100);
  EXPECT_EQ(room_.excess(), 0u);
  room_.went(100'000 - 5);  // the program has dropped nearly all
  EXPECT_EQ(room_.excess(), 0u);
  room_.end_search(excess);
  EXPECT_EQ(room_.sought(), 0u);
}

TEST_F(RoomTest, RoomIsMadeForWhatIsAnnouncedAheadOfIt) {
  room_.came(100'000 - room_.reserve());
  ASSERT_EQ(room_.excess(), 0u);
  room_.announce(50);
  EXPECT_TRUE(room_.lacks_announced());
  EXPECT_EQ(room_.excess(), 50 + room_.reserve());
  room_.no_longer_announced(50);
  EXPECT_EQ(room_.excess(), 0u);
}

TEST_F(RoomTest, MoreThanMemoryAnnouncedEmptiesItAndNoMore) {
  room_.came(1000);
  room_.announce(200'000);
  EXPECT_EQ(room_.excess(), 1000u);
}

TEST_F(RoomTest, TheReserveShrinksRoundByRoundAndGrowsWhenSomebodyWaits) {
  budget_.limit = 10'000'000;  // no bound to the reserve
  room_.refresh();
  ASSERT_EQ(room_.reserve(), Room::kMostReserve);
  for (int round = 0; round < 1000; ++round) room_.lower_reserve();
  const std::uint64_t least = room_.reserve();
  EXPECT_LT(least, 64u);
  room_.begin_wait();
  EXPECT_EQ(room_.waiting(), 1u);
  EXPECT_EQ(room_.reserve(), least * 5 / 4);
  room_.end_wait();
  EXPECT_EQ(room_.waiting(), 0u);
  room_.announce(1);  // a sweep: all of it at once
  room_.lower_reserve();
  EXPECT_EQ(room_.reserve(), Room::kMostReserve);
}

TEST_F(RoomTest, ASmallMemoryKeepsASmallReserve) {
  EXPECT_EQ(room_.reserve(), 100'000u / 256);
  budget_.limit = 200;
  room_.refresh();
  EXPECT_EQ(room_.reserve(), Room::kLeastReserve);
}

TEST_F(RoomTest, ThereIsHopeWhileSomethingIsBeingWrittenOrTheLastRoundFoundSome) {
  room_.note_round(false);
  EXPECT_TRUE(room_.is_stuck());
  EXPECT_FALSE(room_.is_hopeless());
  for (int round = 0; round < 10; ++round) room_.note_round(false);
  EXPECT_TRUE(room_.is_hopeless());
  room_.will_leave(1);
  EXPECT_FALSE(room_.is_hopeless());
  room_.stays(1);
  room_.note_round(true);
  EXPECT_FALSE(room_.is_stuck());
  EXPECT_FALSE(room_.is_hopeless());
}

TEST_F(RoomTest, AForkedChildHasItsPagesAndNobodyWhoWaits) {
  room_.came(70);
  room_.announce(30);
  room_.begin_wait();
  room_.begin_search(20);  // by an evictor that had let somebody through at the door
  room_.forget_threads();
  EXPECT_EQ(room_.sought(), 0u);
  EXPECT_EQ(room_.resident(), 70u);
  EXPECT_EQ(room_.announced(), 0u);
  EXPECT_EQ(room_.waiting(), 0u);
}

}  // namespace
}  // namespace farheap::pager
