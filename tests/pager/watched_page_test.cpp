// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A page in view that is taken out of it, so that its next use is seen.
#include <gtest/gtest.h>

#include <vector>

#include "lone_pager.hpp"

namespace farheap::pager {
namespace {

using WatchedPageTest = testing::LonePagerTest;

TEST_F(WatchedPageTest, GoesOutOfViewAloneAndComesBackWithoutTheStore) {
  for (PageNumber page = 0; page < 64; ++page) write(page);
  ASSERT_TRUE(write(17));
  EXPECT_TRUE(pager_->watch(17));
  EXPECT_EQ(pager_->state(17), PageState::kProbation);
  EXPECT_EQ(pager_->state(16), PageState::kPresent);
  EXPECT_EQ(pager_->state(18), PageState::kPresent);
  EXPECT_FALSE(pager_->watch(17)) << "it is out of view already";
  EXPECT_FALSE(write(17));
  EXPECT_EQ(pager_->state(17), PageState::kPresent);
  EXPECT_EQ(counters_.faults_store, 0u);
  EXPECT_EQ(pager_->check(), "");
}

TEST_F(WatchedPageTest, OfABlockOfItsOwnGoesToo) {
  write(5);
  for (int i = 0; i < 3; ++i) {  // its block is one page from the first time on
    EXPECT_TRUE(pager_->watch(5));
    EXPECT_FALSE(write(5));
  }
  EXPECT_EQ(pager_->check(), "");
}

TEST_F(WatchedPageTest, InViewAreThoseThatAreTold) {
  for (PageNumber page = 0; page < 64; ++page) write(page);
  ASSERT_TRUE(pager_->watch(17));
  std::vector<PageRun> told;
  pager_->tell_in_view(8, 40, [&](PageRun run) { told.push_back(run); });
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].first, 8u);
  EXPECT_EQ(told[0].count, 9u);
  EXPECT_EQ(told[1].first, 18u);
  EXPECT_EQ(told[1].count, 30u);
}

TEST_F(WatchedPageTest, IsNoneThatWasNeverThere) {
  EXPECT_FALSE(pager_->watch(100));
  EXPECT_EQ(pager_->state(100), PageState::kFresh);
}

}  // namespace
}  // namespace farheap::pager
