// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/phase_search.hpp"

#include <gtest/gtest.h>

namespace farheap::plan {
namespace {

using pager::OrderState;

TEST(PhaseSearch, GoesOnOnlyWhereAnOrderIsLeft) {
  PhaseSearch search(3);
  EXPECT_FALSE(search.is_left(OrderState::kNone));
  EXPECT_FALSE(search.is_left(OrderState::kKept));
  EXPECT_EQ(search.now(), 0u);
  EXPECT_TRUE(search.is_left(OrderState::kLeft));
  EXPECT_EQ(search.now(), 1u);
  EXPECT_TRUE(search.is_left(OrderState::kNeverKept));
  EXPECT_EQ(search.now(), 2u);
  EXPECT_TRUE(search.is_left(OrderState::kLeft));
  EXPECT_EQ(search.now(), 0u);
}

TEST(PhaseSearch, APhaseThatWasGivenUpAgainAndAgainIsNotTriedAnyMore) {
  PhaseSearch search(3);
  EXPECT_TRUE(search.is_left(OrderState::kGivenUp)) << "where it is left, that may be";
  EXPECT_TRUE(search.is_left(OrderState::kLeft));
  EXPECT_TRUE(search.is_left(OrderState::kLeft));
  EXPECT_EQ(search.now(), 0u);
  EXPECT_TRUE(search.is_left(OrderState::kGivenUp));
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(search.is_left(OrderState::kLeft));
    EXPECT_NE(search.now(), 0u);
  }
  for (int i = 0; i < 5; ++i) (void)search.is_left(OrderState::kGivenUp);
  EXPECT_FALSE(search.is_left(OrderState::kLeft)) << "the only other one was given up, too";
}

TEST(PhaseSearch, TheOnlyOneStays) {
  PhaseSearch search(1);
  for (const OrderState state : {OrderState::kLeft, OrderState::kNeverKept, OrderState::kGivenUp}) {
    EXPECT_FALSE(search.is_left(state));
    EXPECT_EQ(search.now(), 0u);
  }
}

// To make an order takes time: a program that keeps to none of them is asked less and less often.
TEST(PhaseSearch, LookingInVainRestsLongerAndLonger) {
  PhaseSearch search(2);
  int tried = 0;
  for (int i = 0; i < 1000; ++i) tried += search.is_left(OrderState::kNeverKept) ? 1 : 0;
  EXPECT_GE(tried, 8);
  EXPECT_LE(tried, 40);
  EXPECT_TRUE(search.is_left(OrderState::kLeft)) << "it has kept to one";
  EXPECT_TRUE(search.is_left(OrderState::kNeverKept));
}

}  // namespace
}  // namespace farheap::plan
