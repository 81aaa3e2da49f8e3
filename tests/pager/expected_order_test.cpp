// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/expected_order.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>

#include "followed_order.hpp"

namespace farheap::pager::testing {
namespace {

TEST(PageOrderTest, UsesWithLittleInBetweenAreOneVisit) {
  PageOrder order(4);
  for (const PageNumber page : {0, 64, 1, 2, 65, 66, 67, 68, 3}) order.add_use(page);
  order.finish();
  ASSERT_EQ(order.visits().size(), 3u);  // of the second block one, of the first two: 3 comes five uses after 2
  EXPECT_EQ(order.visits()[0].block, 0u);
  EXPECT_EQ(order.visits()[0].last, 3u);
  EXPECT_EQ(order.visits()[0].next, 2u);
  EXPECT_EQ(order.visits()[1].block, 1u);
  EXPECT_EQ(order.visits()[1].next, PageOrder::kNone);
  EXPECT_EQ(order.visits()[2].first_page, 3u);
  EXPECT_EQ(order.by_end(0), 0u);
  EXPECT_EQ(order.by_end(2), 2u);
}

TEST(PageOrderTest, VisitsOfARoundGoOnForEver) {
  const auto order = round_of(2, 5, 3);  // 0 1 | 5 6 7 5 6 7 ...
  EXPECT_TRUE(order->has_round());
  EXPECT_EQ(order->round(), 2u);
  EXPECT_EQ(order->visits().size(), 5u);
  for (PageOrder::Number number = 2; number < 1000; ++number) {
    ASSERT_TRUE(order->has(number));
    const auto visit = order->visit(number);
    EXPECT_EQ(visit.block, 5 + (number - 2) % 3);
    EXPECT_EQ(visit.first, number * kBlock);
    EXPECT_EQ(visit.last, visit.first + kBlock - 1);
    EXPECT_EQ(visit.next, number + 3);
    EXPECT_EQ(order->by_end(number), number);
  }
  EXPECT_EQ(order->visit(0).next, PageOrder::kNone);
  EXPECT_EQ(order->by_end(1), 1u);
  const auto late = order->visit(PageOrder::Number{3} << 40);
  EXPECT_EQ(late.first, (PageOrder::Number{3} << 40) * kBlock);
}

TEST(PageOrderTest, WhatIsDoneOnceLeadsIntoTheRound) {
  const auto order = round_of(4, 2, 3);  // 0 1 2 3 | 2 3 4 2 3 4 ...
  EXPECT_EQ(order->visit(1).next, PageOrder::kNone);
  EXPECT_EQ(order->visit(2).next, 4u);
  EXPECT_EQ(order->visit(3).next, 5u);
  EXPECT_EQ(order->visit(6).next, 9u);
}

TEST(PageOrderTest, ABlockTwiceInARoundComesTwice) {
  PageOrder order(4);
  for (const auto& [block, first] : {std::pair{1u, 0u}, {2u, 10u}, {1u, 20u}, {3u, 30u}}) {
    order.add_visit({.block = block, .first = first, .last = first + 9});
  }
  order.finish(0, 40);
  for (PageOrder::Number round = 0; round < 5; ++round) {
    EXPECT_EQ(order.visit(4 * round).next, 4 * round + 2);
    EXPECT_EQ(order.visit(4 * round + 1).next, 4 * round + 5);
    EXPECT_EQ(order.visit(4 * round + 2).next, 4 * round + 4);
    EXPECT_EQ(order.visit(4 * round + 2).first, 40 * round + 20);
  }
}

TEST(PageOrderTest, VisitsEndInAnotherOrderThanTheyBegin) {
  PageOrder order(4);
  order.add_visit({.block = 9, .first = 0, .last = 5});
  order.add_visit({.block = 1, .first = 10, .last = 39});
  order.add_visit({.block = 2, .first = 15, .last = 20});
  order.finish(1, 30);
  const PageOrder::Number wanted[] = {0, 2, 1, 4, 3, 6, 5};
  for (std::size_t i = 0; i < std::size(wanted); ++i) EXPECT_EQ(order.by_end(i), wanted[i]) << i;
}

TEST(PageOrderTest, WithoutARoundVisitsEnd) {
  const auto order = sweeps(2, 3);
  EXPECT_FALSE(order->has_round());
  EXPECT_TRUE(order->has(5));
  EXPECT_FALSE(order->has(6));
}

TEST_F(ExpectedOrderTest, SaysNothingBeforeTheProgramIsSeenInIt) {
  follow(sweeps(2, 200));
  show(0);
  store(1);
  EXPECT_EQ(victim(), PageOrder::kNone);
  EXPECT_EQ(order_->next().run.count, 0u);
  touch_block(0);
  touch_block(1);
  EXPECT_FALSE(order_->is_followed());
  touch_block(2);
  EXPECT_TRUE(order_->is_followed());
}

// Of a plan that was wrong the first blocks were read, and let go of, before it was noticed.
TEST_F(ExpectedOrderTest, UntilTouchesHaveComeAsExpectedItIsOnlyLookedAt) {
  look_at(sweeps(2, 300));
  for (std::uint32_t block = 200; block < 300; ++block) store(block);
  for (std::uint32_t block = 0; block < 100; ++block) show(block);
  std::uint32_t block = 0;
  for (; block < 50 && !order_->is_followed(); ++block) {
    EXPECT_EQ(order_->next().run.count, 0u);
    EXPECT_EQ(order_->take_victim(), 0u);
    touch_block(block);
  }
  EXPECT_GE(block, 10u);
  EXPECT_LE(block, 20u);
  ASSERT_TRUE(order_->is_trusted());
  EXPECT_NE(victim(), PageOrder::kNone);
}

// It goes on somewhere else after every ten blocks, or touches one elsewhere after every four.
TEST_F(ExpectedOrderTest, AProgramThatJumpsIsOnlyLookedAt) {
  for (const bool is_elsewhere : {true, false}) {
    look_at(round_of(0, 0, 1000));
    std::uint32_t block = 0;
    for (int i = 0; i < 200; ++i, block = (block + 377) % 900) {
      if (is_elsewhere) {
        for (std::uint32_t same = 0; same < 10; ++same) touch_block(block + same);
      } else {
        for (std::uint32_t same = 0; same < 4; ++same) touch_block(static_cast<std::uint32_t>(4 * i) % 800 + same);
        touch_block(static_cast<std::uint32_t>(4 * i + 100) % 1000);
      }
    }
    EXPECT_FALSE(order_->is_trusted());
    EXPECT_FALSE(order_->is_given_up()) << "it costs little";
  }
}

TEST_F(ExpectedOrderTest, LeavesWhatIsUsedLast) {
  follow(sweeps(2, 200));
  for (std::uint32_t block = 0; block < 100; ++block) show(block);
  for (const std::uint32_t block : {50, 51, 52}) touch_block(block);
  EXPECT_EQ(victim(), 50u);  // 51 may still be in use, unseen; 50 comes back in the next sweep, after 0 to 49
  EXPECT_EQ(victim(), 49u);
}

TEST_F(ExpectedOrderTest, WhatIsNeverUsedAgainLeavesFirst) {
  follow(sweeps(1, 200));
  for (std::uint32_t block = 0; block < 100; ++block) show(block);
  for (const std::uint32_t block : {50, 51, 52}) touch_block(block);
  EXPECT_LE(victim(), 50u);
}

TEST_F(ExpectedOrderTest, BringsInWhatIsUsedNextWithAMarkerAndNotMuchMore) {
  follow(sweeps(2, 200));
  for (std::uint32_t block = 0; block < 200; ++block) store(block);
  for (const std::uint32_t block : {10, 11, 12}) touch_block(block);
  std::set<PageNumber> asked;
  unsigned markers = 0;
  for (ExpectedOrder::Next next = order_->next(); next.run.count != 0; next = order_->next()) {
    EXPECT_EQ(next.run.count, kBlock);
    markers += order_->take_next().marker.count;
    EXPECT_TRUE(asked.insert(next.run.first).second);
    show(PageOrder::block_of(next.run.first));
  }
  ASSERT_FALSE(asked.empty());
  EXPECT_EQ(*asked.begin(), 12u * kBlock);
  EXPECT_GT(markers, 0u);
  EXPECT_LE(markers, asked.size());
  EXPECT_LT(*asked.rbegin(), 60u * kBlock) << "so early it makes others leave too early";
}

// A full store, or one that stalls: what is next is taken again and again, and does not come.
TEST_F(ExpectedOrderTest, IsNotGivenUpForPagesThatDidNotCome) {
  follow(sweeps(2, 200));
  for (std::uint32_t block = 0; block < 200; ++block) store(block);
  for (const std::uint32_t block : {10, 11, 12}) touch_block(block);
  const PageRun marker = order_->next().marker;
  ASSERT_NE(marker.count, 0u);
  for (int i = 0; i < 100'000; ++i) {
    const ExpectedOrder::Next taken = order_->take_next();
    ASSERT_EQ(taken.marker.first, marker.first) << "without it nobody sees the program pass there";
    ASSERT_EQ(taken.marker.count, marker.count) << "nor here, " << i;
    order_->brought(taken, 0);
    ASSERT_TRUE(order_->is_followed()) << i;
  }
  for (int i = 0; i < 100'000 && order_->is_followed(); ++i) order_->brought(order_->take_next(), kBlock);
  EXPECT_TRUE(order_->is_given_up()) << "what came was not used";
}

// It is written, or somebody looks at it, just now.
TEST_F(ExpectedOrderTest, ABusyBlockLeavesWhenItIsNotBusyAnyMore) {
  follow(sweeps(2, 200));
  for (std::uint32_t block = 0; block < 100; ++block) show(block);
  for (const std::uint32_t block : {50, 51, 52}) touch_block(block);
  const BlockId id = table_.tag(50 * kBlock);
  table_.block(id).busy = true;
  EXPECT_EQ(victim(), 49u);
  EXPECT_EQ(victim(), 48u);
  table_.block(id).busy = false;
  EXPECT_EQ(victim(), 50u);
  EXPECT_EQ(victim(), 47u);
}

TEST_F(ExpectedOrderTest, WhereAllAreBusyNoneLeavesAndAllStayOnTheList) {
  follow(sweeps(2, 1000));
  for (std::uint32_t block = 0; block < 500; ++block) show(block, block % 2 == 0);
  for (const std::uint32_t block : {50, 51, 52}) touch_block(block);
  const auto set_busy = [&](bool busy) {
    for (std::uint32_t block = 0; block < 500; ++block)
      table_.block(table_.tag(PageNumber{block} * kBlock)).busy = busy;
  };
  set_busy(true);
  const std::uint64_t before = order_->pages_in_view();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(victim(), PageOrder::kNone);
  EXPECT_EQ(order_->pages_in_view(), before);
  set_busy(false);
  EXPECT_NE(victim(), PageOrder::kNone);
}

TEST_F(ExpectedOrderTest, WhatTheHeapHasNotIsNotBroughtIn) {
  auto order = std::make_shared<PageOrder>(16);
  for (PageNumber page = 0; page < 4 * kBlock; ++page) order->add_use(page);
  order->add_use(PageNumber{1} << 27);
  order->finish();
  follow(order);
  for (const std::uint32_t block : {0, 1, 2}) touch_block(block);
  EXPECT_EQ(order_->next().run.count, 0u);
}

// A visit that ended before an earlier one of its block was never over, and the block never left.
TEST_F(ExpectedOrderTest, AVisitWithinAnotherOneEndsWithIt) {
  auto order = std::make_shared<PageOrder>(16);
  order->add_visit({.block = 0, .first = 0, .last = 400});
  order->add_visit({.block = 0, .first = 100, .last = 200});
  for (std::uint32_t block = 1; block < 100; ++block) {
    order->add_visit({.block = block, .first = block * kBlock + 400, .last = block * kBlock + 463});
  }
  order->finish();
  follow(order);
  show(0);
  for (const std::uint32_t block : {20, 21, 22}) touch_block(block);
  EXPECT_EQ(victim(), 0u);
}

TEST_F(ExpectedOrderTest, AMarkerIsHeldUntilTheProgramIsPast) {
  follow(sweeps(2, 200));
  for (const std::uint32_t block : {10, 11, 12}) touch_block(block);
  Block marker;
  marker.first = 14 * kBlock;
  EXPECT_FALSE(order_->holds(marker)) << "it is none";
  marker.marker = true;
  EXPECT_TRUE(order_->holds(marker));
  for (const std::uint32_t block : {14, 16, 18, 20, 22}) touch_block(block);
  EXPECT_FALSE(order_->holds(marker));
}

TEST_F(ExpectedOrderTest, OneStrangeTouchChangesNothing) {
  follow(sweeps(2, 200));
  for (const std::uint32_t block : {10, 11, 12}) touch_block(block);
  const auto before = order_->now();
  EXPECT_FALSE(touch_block(150));
  EXPECT_FALSE(order_->touched(60'000));
  EXPECT_EQ(order_->now(), before);
  EXPECT_TRUE(touch_block(13));
}

TEST_F(ExpectedOrderTest, ThreeTouchesThatAgreeAreWhereTheProgramIs) {
  follow(sweeps(2, 200));
  for (const std::uint32_t block : {10, 11, 12}) touch_block(block);
  for (const std::uint32_t block : {150, 151, 152}) touch_block(block);
  EXPECT_EQ(order_->now(), 152u * kBlock);
}

TEST_F(ExpectedOrderTest, WhoLeavesItIsNotFollowedUntilHeIsBack) {
  follow(sweeps(3, 200));
  for (const std::uint32_t block : {10, 11, 12}) touch_block(block);
  for (PageNumber page = 40'000; page < 40'600; ++page) order_->touched(page);
  EXPECT_FALSE(order_->is_followed());
  show(13);
  EXPECT_EQ(victim(), PageOrder::kNone);
  for (const std::uint32_t block : {20, 21, 22}) touch_block(block);
  EXPECT_TRUE(order_->is_followed());
}

// Of cg, 32 look-ups in a vector that no plan knew, while all of the matrix was in view, looked like its end.
TEST_F(ExpectedOrderTest, WhatIsInNoOrderIsUsedBesideIt) {
  follow(sweeps(3, 200));
  for (const std::uint32_t block : {10, 11, 12}) touch_block(block);
  for (PageNumber page = 40'000; page < 40'100; ++page) order_->touched(page);
  EXPECT_TRUE(order_->is_followed());
}

// The next visit of what is used a little late is a round away. Taken for it, all of the round would be over.
TEST_F(ExpectedOrderTest, WhatComesALittleLateIsNoJumpByARound) {
  memory_.pages = 120 * kBlock;
  room_.refresh();
  follow(sweeps(10, 200));
  for (const std::uint32_t block : {10, 11, 12}) touch_block(block);
  for (const std::uint32_t block : {13, 14, 15}) touch_block(block);
  const PageOrder::Moment before = order_->now();
  for (const std::uint32_t block : {7, 8, 9, 10}) touch_block(block);
  EXPECT_EQ(order_->now(), before);
  EXPECT_TRUE(order_->is_followed());
}

TEST_F(ExpectedOrderTest, WhileMemoryFillsWhatLeavesIsSpread) {
  memory_.pages = 100 * kBlock;
  room_.refresh();
  follow(sweeps(3, 200));
  for (const std::uint32_t block : {0, 1, 2}) touch_block(block);
  std::set<PageOrder::Number> left;
  for (std::uint32_t block = 0; block < 200; ++block) {
    show(block, true);
    touch_block(block);
    while (room_.lacks(0)) {
      const PageOrder::Number gone = victim();
      ASSERT_NE(gone, PageOrder::kNone);
      left.insert(gone);
    }
  }
  ASSERT_GE(left.size(), 95u);
  EXPECT_LT(*left.begin(), 40u);  // by Belady's rule alone it would be the second half
}

// ---- rounds

TEST_F(ExpectedOrderTest, AProgramIsFollowedThroughManyRounds) {
  follow(round_of(10, 0, 200));
  for (std::uint32_t block = 0; block < 10; ++block) touch_block(block);
  EXPECT_TRUE(order_->is_followed());
  EXPECT_FALSE(order_->is_in_round());
  for (std::uint64_t round = 0; round < 6; ++round) {
    for (std::uint32_t block = 0; block < 200; block += 4) {
      EXPECT_TRUE(touch_block(block)) << "round " << round << ", block " << block;
      EXPECT_EQ(order_->now(), (10 + 200 * round + block) * kBlock);
      EXPECT_TRUE(order_->is_in_round());
    }
  }
}

TEST_F(ExpectedOrderTest, InARoundThereIsAlwaysANext) {
  follow(round_of(0, 0, 200));
  for (std::uint32_t block = 0; block < 200; ++block) store(block);
  for (std::uint64_t round = 0; round < 4; ++round) {
    for (std::uint32_t block = 0; block < 200; ++block) {
      touch_block(block);
      if (!order_->is_followed()) continue;
      const auto next = order_->next();
      ASSERT_NE(next.run.count, 0u) << "round " << round << ", block " << block;
      EXPECT_LT((PageOrder::block_of(next.run.first) + 200 - block) % 200, 40u);
      (void)order_->take_next();
      show(PageOrder::block_of(next.run.first));
      const bool is_first = round == 0 && block < 10;  // all that is there is in use
      EXPECT_TRUE(victim() != PageOrder::kNone || is_first) << "round " << round << ", block " << block;
    }
  }
}

TEST_F(ExpectedOrderTest, InARoundLeavesWhatComesLastOnTheRing) {
  follow(round_of(0, 0, 200));
  for (std::uint32_t block = 0; block < 100; ++block) show(block);
  for (std::uint32_t round = 0; round < 3; ++round) {
    for (std::uint32_t block = 0; block < 200; block += 4) touch_block(block);
  }
  for (const std::uint32_t block : {48, 49, 50}) touch_block(block);
  // 49 may still be in use, unseen; 48 comes again after all others.
  EXPECT_EQ(victim(), 48u);
  EXPECT_EQ(victim(), 47u);
}

TEST_F(ExpectedOrderTest, WhatIsNotInTheRoundLeavesFirstWhenItHasBegun) {
  follow(round_of(20, 100, 50));
  for (const std::uint32_t block : {3, 105, 110, 120}) show(block);
  for (std::uint32_t block = 15; block < 20; ++block) touch_block(block);
  for (const std::uint32_t block : {100, 101, 102}) touch_block(block);
  EXPECT_TRUE(order_->is_in_round());
  EXPECT_EQ(victim(), 3u);
  EXPECT_EQ(victim(), 120u);
}

TEST_F(ExpectedOrderTest, WhoSkipsToTheRoundExpectsItsBlocksAlone) {
  const auto order = round_of(20, 0, 50);  // the same blocks once, and in the round
  follow(order);
  order_->skip_to_round();
  for (const std::uint32_t block : {5, 6, 7}) touch_block(block);
  EXPECT_TRUE(order_->is_in_round());
  EXPECT_EQ(order_->now(), (20 + 7) * kBlock);
  follow(order);
  for (const std::uint32_t block : {5, 6, 7}) touch_block(block);
  EXPECT_FALSE(order_->is_in_round());
  EXPECT_EQ(order_->now(), 7 * kBlock);
}

// Made ahead for who is in the round already, they say what they say after all before it was passed one by one.
TEST_F(ExpectedOrderTest, TablesOfTheRoundSayTheSameAsSkippingToIt) {
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    const std::uint32_t once = random() % 30, round = 1 + random() % 30, blocks = 1 + random() % 20;
    auto order = std::make_shared<PageOrder>(random() % 100);
    for (std::uint32_t k = 0; k < once + round; ++k) {
      const PageOrder::Moment first = PageOrder::Moment{k} * 64,
                              end = PageOrder::Moment{k < once ? once : once + round} * 64;
      order->add_visit({.block = static_cast<std::uint32_t>(random() % blocks),
                        .first = first,
                        .last = std::min(first + random() % 300, end - 1)});
    }
    order->finish(once, PageOrder::Moment{round} * 64);
    PageTable table = PageTable::make(1 << 16).value();
    Policy policy{PolicyKind::kPeriod, table};
    for (std::uint32_t block = 0; block < blocks; block += 2) {
      const PageNumber page = PageNumber{block} * kBlock;
      const BlockId id = table.new_block(page, 1);
      table.set_state(page, PageState::kPresent);
      table.tag(page) = id;
      policy.entered(id, false, false);
    }
    ExpectedOrder skips(ExpectedOrder::Tables(order, false, 0), table, policy, room_);
    skips.skip_to_round();
    ExpectedOrder begins(ExpectedOrder::Tables(order, true, 0), table, policy, room_);
    EXPECT_EQ(skips.now(), begins.now());
    EXPECT_EQ(skips.pages_in_view(), begins.pages_in_view());
    for (int touches = 0; touches < 200; ++touches) {
      const PageNumber page = random() % blocks * kBlock;
      ASSERT_EQ(skips.touched(page), begins.touched(page)) << i;
      ASSERT_EQ(skips.now(), begins.now()) << i;
      ASSERT_EQ(skips.is_followed(), begins.is_followed()) << i;
      ASSERT_EQ(skips.next().run.first, begins.next().run.first) << i;
    }
  }
}

TEST_F(ExpectedOrderTest, WithoutARoundNothingIsSkipped) {
  follow(sweeps(2, 50));
  order_->skip_to_round();
  EXPECT_EQ(order_->now(), 0u);
  for (const std::uint32_t block : {5, 6, 7}) touch_block(block);
  EXPECT_TRUE(order_->is_followed());
  EXPECT_FALSE(order_->is_in_round());
}

// An order that comes while the program runs finds pages in view.
TEST_F(ExpectedOrderTest, WhatIsInViewWhenItComesMayLeave) {
  follow(sweeps(1, 1));
  for (std::uint32_t block = 0; block < 100; ++block) show(block);
  follow(round_of(0, 0, 200));
  for (const std::uint32_t block : {50, 51, 52}) touch_block(block);
  std::set<PageOrder::Number> left;
  for (int i = 0; i < 97; ++i) left.insert(victim());
  EXPECT_FALSE(left.contains(PageOrder::kNone));
  EXPECT_GE(left.size(), 96u);
  EXPECT_FALSE(left.contains(52)) << "it is in use";
}

TEST_F(ExpectedOrderTest, AnOrderWithoutVisitsSaysNothing) {
  auto order = std::make_shared<PageOrder>(16);
  order->finish();
  follow(order);
  show(0);
  order_->skip_to_round();
  for (std::uint32_t block = 0; block < 100; ++block) EXPECT_FALSE(touch_block(block));
  EXPECT_EQ(victim(), PageOrder::kNone);
  EXPECT_EQ(order_->next().run.count, 0u);
}

}  // namespace
}  // namespace farheap::pager::testing
