// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a miss brings in: which of its neighbours, and as how many reads.
#include "pager/incoming.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "lone_pager.hpp"

namespace farheap::pager {
namespace {

using MissTest = testing::LonePagerTest;

// A neighbour behind a page that was there already was never fetched: where half of the pages are in memory, a miss
// brought one page, and so did the next one beside it.
TEST_F(MissTest, NeighboursBetweenWhichPagesAreThereComeAlong) {
  for (PageNumber page = 0; page < 16; ++page) write(page);
  view_.refuse(6, true);
  for (PageNumber page = 1024; page < 1024 + 2 * kMemory; ++page) write(page);
  view_.refuse(6, false);
  ASSERT_EQ(pager_->state(6), PageState::kPresent);
  for (const PageNumber page : {4, 5, 7}) ASSERT_EQ(pager_->state(page), PageState::kStored) << page;
  write(5);
  EXPECT_EQ(pager_->state(5), PageState::kPresent);
  EXPECT_EQ(pager_->state(4), PageState::kPresent);  // of one run with it
  EXPECT_EQ(pager_->state(7), PageState::kProbation);
  EXPECT_EQ(pager_->check(), "");
}

// Interpreters and compilers, whose data lies together, had a fault for each page of it (docs/benchmarks/programs.md,
// "Neighbours that are used").
TEST_F(MissTest, WhatIsUsedTogetherTakesOneFault) {
  constexpr PageNumber kGroup = 8, kGroups = kPages / kGroup;
  std::mt19937 random(1);
  const auto touch_groups = [&](int groups) {
    for (int i = 0; i < groups; ++i) {
      const PageNumber first = random() % kGroups * kGroup;
      for (const PageNumber beside : {3, 0, 6, 1, 7, 4, 2, 5}) write(first + beside);  // no sweep
    }
  };
  touch_groups(2000);
  const std::uint64_t before = counters_.faults;
  constexpr int kTouched = 1000;
  touch_groups(kTouched);
  EXPECT_LT(counters_.faults - before, 3 * kTouched);  // page by page it were 4.7
  EXPECT_EQ(pager_->check(), "");
}

// Pages that had come back one by one stayed by themselves for ever.
TEST_F(MissTest, NeighboursThatAreUsedLeaveTogether) {
  constexpr PageNumber kTogether = 4;
  for (PageNumber page = 0; page < kTogether; ++page) {  // in the list they are far from each other
    view_.put_in({page, 1}, buffer_[0].data(), View::Guard::kOff);
    pager_->adopt({page, 1});
    for (PageNumber between = 512; between < 612; ++between) write(page * 100 + between);
  }
  for (PageNumber page = 1024; page < 1024 + 2 * kMemory; ++page) {
    write(page);
    for (PageNumber beside = 1; beside < kTogether; ++beside) {
      ASSERT_EQ(pager_->state(beside), pager_->state(0)) << "after " << page;
    }
  }
  EXPECT_NE(pager_->state(0), PageState::kPresent);
  EXPECT_EQ(pager_->check(), "");
}

// Its old block still knew the hash of a page that had been dropped, and was asked when the two left together: the
// page, written alike again, was taken for one that the store has, and lost.
TEST_F(MissTest, WhatWasDroppedAndIsWrittenAlikeIsKept) {
  const auto sweep = [&] {
    for (PageNumber page = 1024; page < 1024 + 2 * kMemory; ++page) write(page);
  };
  for (const PageNumber page : {0, 1}) write(page);
  sweep();
  ASSERT_EQ(pager_->state(1), PageState::kStored);
  pager_->fault(0, false, buffer_[0].data());
  ASSERT_EQ(pager_->state(1), PageState::kPresent);
  write(2);  // so that page 1 comes back alone
  pager_->discard(1, 1);
  write(1);
  sweep();
  ASSERT_EQ(pager_->state(1), PageState::kStored);
  EXPECT_FALSE(write(1)) << "it is read from the store, or this throws";
}

TEST(IncomingTest, PartsThatFollowEachOtherAreOneRead) {
  Incoming incoming;
  incoming.add({3, 0}, Incoming::As::kGuess);
  incoming.add({4, 2}, Incoming::As::kGuess);
  incoming.add_around({8, 5}, {10, 1}, Incoming::As::kAskedFor, Incoming::As::kGuess);
  ASSERT_EQ(incoming.parts().size(), 4u);
  EXPECT_EQ(incoming.pages(), 7u);
  std::vector<std::byte> buffer(7 * base::kPageBytes);
  const Incoming::Reads reads(incoming, buffer.data());
  ASSERT_EQ(reads.all().size(), 2u);
  EXPECT_EQ(reads.all()[0].run.first, 4u);
  EXPECT_EQ(reads.all()[0].run.count, 2u);
  EXPECT_EQ(reads.all()[1].run.first, 8u);
  EXPECT_EQ(reads.all()[1].run.count, 5u);
  EXPECT_EQ(reads.all()[1].into, buffer.data() + 2 * base::kPageBytes);
}

TEST(IncomingTest, AWindowOfWhichEverySecondPageIsThereFits) {
  Incoming incoming;
  for (PageNumber page = 1; page < Neighbours::kMostPages; page += 2) incoming.add({page, 1}, Incoming::As::kGuess);
  EXPECT_LE(incoming.parts().size() + 2, Incoming::kMostParts);
}

}  // namespace
}  // namespace farheap::pager
