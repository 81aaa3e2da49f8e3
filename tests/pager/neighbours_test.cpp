// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many pages come with one that was touched, by what was learned of its extent.
#include "pager/neighbours.hpp"

#include <gtest/gtest.h>

#include "pager/around.hpp"

namespace farheap::pager {
namespace {

constexpr Streams::Advice kAlone{};

TEST(NeighboursTest, WhereNoneIsUsedPagesComeAlone) {
  Neighbours neighbours;
  Extent extent;
  neighbours.learn(extent, false, 200);
  EXPECT_EQ(neighbours.sure_pages(extent), 1u);
}

TEST(NeighboursTest, TheMoreAreUsedTheMoreComeIntoView) {
  Neighbours neighbours;
  Extent extent;
  neighbours.learn(extent, false, 200);
  std::uint32_t before = 1;
  for (int i = 0; i < 200; ++i) {
    neighbours.learn(extent, true, 1);
    ASSERT_GE(neighbours.sure_pages(extent), before);
    before = neighbours.sure_pages(extent);
  }
  EXPECT_EQ(before, Neighbours::kMostPages);
}

TEST(NeighboursTest, AnExtentOfWhichNothingIsKnownIsTakenForOneLikeTheOthers) {
  Neighbours neighbours;
  Extent known, unknown, late;
  EXPECT_GT(neighbours.sure_pages(unknown), 1u);
  neighbours.learn(known, false, 2000);
  EXPECT_EQ(neighbours.sure_pages(late), 1u);
}

// One that never asks would not see that a program has begun to use its memory otherwise.
TEST(AroundTest, NowAndThenNeighboursAreLeftOnProbation) {
  Around around(1, 512);
  Extent extent;
  around.guessed(extent, true, 200);
  int asked = 0;
  for (int i = 0; i < 640; ++i) {
    const Around::Window window = around.touched(extent);
    EXPECT_EQ(window.pages, Neighbours::kMostPages);
    asked += window.sure < window.pages;
  }
  EXPECT_EQ(asked, 10);
}

// A recording is to see each use, and asks for blocks of one page.
TEST(AroundTest, BlocksAreNeverLargerThanTheOptionSays) {
  Around around(1, 1);
  Extent extent;
  around.guessed(extent, true, 200);
  for (const bool near : {false, true}) {
    const Around::Window window = around.missed(extent, kAlone, near);
    EXPECT_EQ(window.pages, 1u);
    EXPECT_EQ(window.sure, 1u);
  }
  EXPECT_EQ(around.touched(extent).sure, 1u);
  EXPECT_EQ(around.together(extent), 1u);
}

}  // namespace
}  // namespace farheap::pager
