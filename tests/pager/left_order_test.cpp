// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// When a program is taken not to keep to its order, and when the order costs more than it saves.
#include <gtest/gtest.h>

#include <memory>

#include "followed_order.hpp"

namespace farheap::pager::testing {
namespace {

TEST_F(ExpectedOrderTest, IsGivenUpWhereWhatWasReadAheadIsNotUsed) {
  follow(sweeps(2, 200));
  for (const std::uint32_t block : {10, 11, 12}) touch_block(block);
  for (int i = 0; i < 20; ++i) {
    order_->note_marker(false);
    order_->note_marker(true);
    order_->note_marker(true);
    order_->note_marker(true);
  }
  EXPECT_TRUE(order_->is_followed()) << "a quarter is not used: that may be";
  for (int i = 0; i < 50; ++i) order_->note_marker(false);
  EXPECT_TRUE(order_->is_given_up());
  for (const std::uint32_t block : {13, 14, 15, 16}) EXPECT_FALSE(touch_block(block));
  EXPECT_FALSE(order_->is_followed());
  EXPECT_EQ(order_->next().run.count, 0u);
}

TEST_F(ExpectedOrderTest, WhereTouchesComeInNoOrderItIsNotFollowed) {
  follow(sweeps(2, 2000));
  for (const std::uint32_t block : {10, 11, 12}) touch_block(block);
  ASSERT_TRUE(order_->is_followed());
  unsigned followed = 0;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    touch_block(i * 977 % 2000);
    followed += order_->is_followed() ? 1 : 0;
  }
  EXPECT_LT(followed, 1000u);
}

// What the order says to be in use has left again and again: by who makes room for what else it says.
TEST_F(ExpectedOrderTest, IsGivenUpWhereWhatIsInUseHasLeft) {
  constexpr std::uint32_t kInUse = 50, kFirst = 100, kSwept = 2000;
  auto order = std::make_shared<PageOrder>(16);
  for (std::uint32_t block = 0; block < kInUse; ++block) order->add_visit({.block = block, .last = kSwept * kBlock});
  for (std::uint32_t i = 0; i < kSwept; ++i) {
    order->add_visit({.block = kFirst + i, .first = i * kBlock, .last = i * kBlock + 63});
  }
  order->finish();
  follow(order);
  for (const std::uint32_t i : {1500, 1501, 1502}) touch_block(kFirst + i);
  ASSERT_TRUE(order_->is_followed());
  for (std::uint32_t i = 0; i < 100; ++i) touch_block(i % kInUse);
  EXPECT_FALSE(order_->is_given_up()) << "now and then that may be";
  for (std::uint32_t i = 0; i < 400; ++i) touch_block(i % kInUse);
  EXPECT_TRUE(order_->is_given_up());
}

// Sweeps over 200 blocks with room for 128: of each some 72 have to be read.
TEST_F(ExpectedOrderTest, SaysWhatItLetsExpectToBeReadAndWhatWas) {
  follow(round_of(0, 0, 200));
  EXPECT_TRUE(order_->is_weighed());
  for (const std::uint32_t block : {0, 1, 2}) touch_block(block);
  (void)order_->take_reads();
  for (int round = 0; round < 4; ++round) {
    for (std::uint32_t block = 3; block < 203; ++block) touch_block(block % 200);
  }
  order_->reads(7 * kBlock, 5);
  const auto reads = order_->take_reads();
  EXPECT_EQ(reads.happened, 5u);
  EXPECT_NEAR(static_cast<double>(reads.expected), 4 * 73 * kBlock, 10 * kBlock);
  EXPECT_EQ(order_->take_reads().happened, 0u) << "it was told";
}

TEST_F(ExpectedOrderTest, IsGivenUpWhereMuchMoreIsReadThanItLetsExpect) {
  for (const unsigned share : {100, 200}) {  // of 200 blocks, in each round
    follow(round_of(0, 0, 200));
    for (int round = 0; round < 20; ++round) {
      for (std::uint32_t block = 0; block < 200; ++block) {
        touch_block(block);
        if (block < share) order_->reads(PageNumber{block} * kBlock, kBlock);
        order_->reads(40'000, kBlock);  // it is in no order
      }
    }
    EXPECT_EQ(order_->is_given_up(), share == 200) << share;
    EXPECT_EQ(order_->has_read_too_much(), share == 200) << share;
  }
}

// Its round fits into memory. What is read all the same was compared with nothing, and so never too much.
TEST_F(ExpectedOrderTest, IsGivenUpWhereNothingIsToBeReadAndMuchIs) {
  follow(round_of(0, 0, 100));
  for (int round = 0; round < 6; ++round) {
    for (std::uint32_t block = 0; block < 100; ++block) {
      touch_block(block);
      order_->reads(PageNumber{block} * kBlock, kBlock);
    }
  }
  EXPECT_TRUE(order_->has_read_too_much());
}

// As in a pass across an object: 100 blocks are in use side by side, then the next 100. In use each of them needs its
// place, so nearly all are read in each round. Their visits all end at once, and what was to be read until then came
// late: it counts from when they begin.
TEST_F(ExpectedOrderTest, IsNotGivenUpWhereBlocksAreInUseSideBySide) {
  auto order = std::make_shared<PageOrder>(16);
  for (std::uint32_t block = 0; block < 400; ++block) {
    const PageOrder::Moment begin = PageOrder::Moment{block / 100} * 100 * kBlock;
    order->add_visit(
        {.block = block, .first = begin + block % 100, .last = begin + PageOrder::Moment{100} * kBlock - 1});
  }
  order->finish(0, PageOrder::Moment{400} * kBlock);
  follow(order);
  for (int i = 0; i < 6 * 400; ++i) {
    const std::uint32_t block = static_cast<std::uint32_t>(i) % 400;
    if (table_.state(PageNumber{block} * kBlock) == PageState::kPresent) continue;
    touch_block(block);
    order_->reads(PageNumber{block} * kBlock, kBlock);
    if (room_.resident() >= 120 * kBlock) (void)victim();
    show(block);
  }
  EXPECT_FALSE(order_->has_read_too_much());
  EXPECT_TRUE(order_->is_followed());
}

// The budget is small at the begin of a run, and may change later.
TEST_F(ExpectedOrderTest, WithOtherMemoryNothingIsSaidUntilItIsWeighedAgain) {
  follow(round_of(0, 0, 200));
  memory_.pages = 32 * kBlock;
  room_.refresh();
  EXPECT_FALSE(order_->is_weighed());
  (void)order_->take_reads();
  for (int round = 0; round < 20; ++round) {
    for (std::uint32_t block = 0; block < 200; ++block) {
      touch_block(block);
      order_->reads(PageNumber{block} * kBlock, kBlock);
    }
  }
  EXPECT_TRUE(order_->is_followed());
  EXPECT_EQ(order_->take_reads().expected, 0u);
  OrderReads reads(*order_->order(), memory_.pages);
  order_->weigh(reads);
  EXPECT_TRUE(order_->is_weighed());
  for (std::uint32_t block = 0; block < 200; ++block) touch_block(block);
  EXPECT_GT(order_->take_reads().expected, 150 * kBlock);
}

// Three touches agree that the program is elsewhere. Against the order, that is so of each block: each was one round
// ahead, and 43 pages had to be read in vain before it was noticed.
TEST_F(ExpectedOrderTest, IsGivenUpWhereTheProgramGoesAgainstIt) {
  follow(round_of(0, 0, 1000));
  for (const std::uint32_t block : {500, 501, 502}) touch_block(block);
  ASSERT_TRUE(order_->is_followed());
  std::uint32_t block = 499;
  for (; block > 400 && !order_->is_given_up(); --block) {
    for (int touch = 0; touch < 3; ++touch) touch_block(block);
  }
  EXPECT_TRUE(order_->is_given_up());
  EXPECT_GT(block, 425u);
}

// As where a block lies between two arrays that are swept in turn (lbm).
TEST_F(ExpectedOrderTest, AJumpNowAndThenIsNoReasonToGiveItUp) {
  follow(round_of(0, 0, 1000));
  for (int round = 0; round < 50; ++round) {
    for (std::uint32_t block = 0; block < 400; ++block) touch_block(block);
    for (int touch = 0; touch < 3; ++touch) touch_block(800);
    for (std::uint32_t block = 801; block < 1000; ++block) touch_block(block);
  }
  EXPECT_TRUE(order_->is_followed());
}

TEST_F(ExpectedOrderTest, ItsStateIsKeptUntilTouchesSayOtherwise) {
  follow(sweeps(3, 200));
  EXPECT_EQ(order_->state(), OrderState::kKept);
  for (const std::uint32_t block : {10, 11, 12}) touch_block(block);
  for (PageNumber page = 40'000; page < 40'100; ++page) order_->touched(page);
  EXPECT_EQ(order_->state(), OrderState::kKept) << "some of what it does not know may be used beside it";
  for (PageNumber page = 40'100; page < 40'600; ++page) order_->touched(page);
  EXPECT_EQ(order_->state(), OrderState::kLeft);
  for (const std::uint32_t block : {20, 21, 22}) touch_block(block);
  EXPECT_EQ(order_->state(), OrderState::kKept);
  for (int i = 0; i < 50; ++i) order_->note_marker(false);
  EXPECT_EQ(order_->state(), OrderState::kGivenUp);
}

TEST_F(ExpectedOrderTest, ItsStateSaysThatItWasNeverKept) {
  follow(sweeps(3, 200));
  for (std::uint32_t block = 199; block > 150; --block) touch_block(block);
  EXPECT_FALSE(order_->is_followed());
  EXPECT_EQ(order_->state(), OrderState::kNeverKept);
}

}  // namespace
}  // namespace farheap::pager::testing
