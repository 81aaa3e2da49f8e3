// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/page_ranges.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace farheap::pager {
namespace {

TEST(PageRangesTest, RangesThatTouchAreOne) {
  PageRanges kept;
  kept.add(10, 20);
  kept.add(30, 40);
  EXPECT_EQ(kept.size(), 2u);
  kept.add(20, 30);
  EXPECT_EQ(kept.size(), 1u);
  EXPECT_TRUE(kept.overlap(39, 100));
  EXPECT_FALSE(kept.overlap(40, 100));
  EXPECT_FALSE(kept.overlap(0, 10));
}

TEST(PageRangesTest, WhatIsTakenBackInTheMiddleLeavesBothSides) {
  PageRanges kept;
  kept.add(0, 100);
  kept.remove(40, 60);
  EXPECT_EQ(kept.size(), 2u);
  EXPECT_TRUE(kept.overlap(39, 40));
  EXPECT_FALSE(kept.overlap(40, 60));
  EXPECT_TRUE(kept.overlap(60, 61));
  kept.remove(0, 1000);
  EXPECT_EQ(kept.size(), 0u);
}

TEST(PageRangesTest, AgreesWithAPlainArray) {
  constexpr PageNumber kPages = 200;
  std::mt19937 random(1);
  PageRanges kept;
  std::vector<bool> plain(kPages);
  for (int i = 0; i < 20'000; ++i) {
    const PageNumber first = random() % kPages, end = std::min(kPages, first + 1 + random() % 20);
    const bool adds = random() % 2 == 0;
    adds ? kept.add(first, end) : kept.remove(first, end);
    for (PageNumber page = first; page < end; ++page) plain[page] = adds;
    const PageNumber page = random() % kPages;
    ASSERT_EQ(kept.overlap(page, page + 1), plain[page]) << i;
  }
  std::size_t ranges = 0;
  for (PageNumber page = 0; page < kPages; ++page) ranges += plain[page] && (page == 0 || !plain[page - 1]);
  EXPECT_EQ(kept.size(), ranges);
}

TEST(PageRangesTest, NoMoreAreRememberedThanAFewThousand) {
  PageRanges kept;
  for (PageNumber i = 0; i < PageRanges::kMost + 1000; ++i) kept.add(2 * i, 2 * i + 1);
  EXPECT_EQ(kept.size(), PageRanges::kMost);
  kept.add(1, 2);  // joins two
  EXPECT_EQ(kept.size(), PageRanges::kMost - 1);
}

}  // namespace
}  // namespace farheap::pager
