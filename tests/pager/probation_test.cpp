// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/probation.hpp"

#include <gtest/gtest.h>

namespace farheap::pager {
namespace {

TEST(ProbationTest, WhereAllVictimsAreForeseenLittleMemoryIsGivenToIt) {
  PageTable table = PageTable::make(1 << 12).value();
  const Probation probation(table, 10);
  EXPECT_EQ(probation.target(10'000, 0), 1000u);
  EXPECT_EQ(probation.target(10'000, 50), 600u);
  EXPECT_EQ(probation.target(10'000, 100), 200u);
  const Probation small(table, 1);  // less than what is left of a larger one
  EXPECT_EQ(small.target(10'000, 0), 100u);
  EXPECT_EQ(small.target(10'000, 100), 100u);
}

TEST(ProbationTest, WhatIsBeingWrittenCountsAsStillThere) {
  PageTable table = PageTable::make(1 << 12).value();
  const auto percent_after = [&](std::uint64_t leaving) {
    Probation probation(table, 10);
    for (int i = 0; i < 2048; ++i) {  // as often here as outside
      probation.touched(true, leaving, 1000);
      probation.touched(false, leaving, 1000);
    }
    return probation.target(100, 0);
  };
  EXPECT_EQ(percent_after(1000), 5u);  // a page here is worth no more than one that has left: it shrinks
  EXPECT_EQ(percent_after(100), 10u);
}

}  // namespace
}  // namespace farheap::pager
