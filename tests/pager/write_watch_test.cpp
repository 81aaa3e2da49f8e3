// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/write_watch.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "lone_pager.hpp"

namespace farheap::pager {
namespace {

using testing::ArrayView;
using testing::PageBytes;

class WriteWatchTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kMemory = 64;
  BlockId bring(PageNumber first, std::uint32_t count = 1) {
    const BlockId id = table_.new_block(first, count);
    const std::vector<PageBytes> zeros(count);
    view_.put_in({first, count}, zeros[0].data(), View::Guard::kOff);
    for (PageNumber page = first; page < first + count; ++page) {
      table_.tag(page) = id;
      table_.set_state(page, PageState::kPresent);
    }
    return id;
  }
  void write(PageNumber page) {
    EXPECT_FALSE(view_.touch(page, [](PageBytes& bytes) { bytes.fill(std::byte{1}); }));
  }
  // So that the kernel is asked again.
  void look_at_others() {
    for (std::uint64_t i = 0; i <= kMemory / 4; ++i) (void)watch_.was_written(other_, kMemory);
  }
  ArrayView view_{2 * kExtentPages};
  PageTable table_ = PageTable::make(2 * kExtentPages).value();
  WriteWatch watch_{view_, table_};
  BlockId other_ = bring(kExtentPages);
};

TEST_F(WriteWatchTest, APageIsInUseThatWasWrittenToSinceTheKernelWasAsked) {
  const BlockId written = bring(3), read = bring(4);
  EXPECT_FALSE(watch_.was_written(written, kMemory)) << "it has just come";
  write(3);
  look_at_others();
  EXPECT_TRUE(watch_.was_written(written, kMemory));
  EXPECT_FALSE(watch_.was_written(read, kMemory));
  look_at_others();
  EXPECT_FALSE(watch_.was_written(written, kMemory)) << "not since the last time";
}

TEST_F(WriteWatchTest, APageThatCameSinceIsNotInUseForThat) {
  const BlockId first = bring(3);
  EXPECT_FALSE(watch_.was_written(first, kMemory));
  const BlockId later = bring(4);
  look_at_others();
  EXPECT_FALSE(watch_.was_written(later, kMemory));
  write(4);
  look_at_others();
  EXPECT_TRUE(watch_.was_written(later, kMemory));
}

TEST_F(WriteWatchTest, WhatIsKnownOfAPageEndsWhenItLeaves) {
  const BlockId id = bring(3);
  EXPECT_FALSE(watch_.was_written(id, kMemory));
  write(3);
  look_at_others();
  EXPECT_FALSE(watch_.was_written(bring(4), kMemory));  // which asks
  View::Taken answer;
  view_.take_out({3, 1}, {&answer, 1});
  table_.set_state(3, PageState::kProbation);
  view_.put_back({3, 1});
  table_.set_state(3, PageState::kPresent);
  EXPECT_FALSE(watch_.was_written(id, kMemory));
}

TEST_F(WriteWatchTest, TheKernelIsAskedFourTimesInARound) {
  std::vector<BlockId> blocks;
  for (PageNumber page = 0; page < kMemory; ++page) blocks.push_back(bring(page));
  (void)watch_.was_written(other_, kMemory);
  const unsigned before = view_.asked;
  for (int round = 0; round < 10; ++round) {
    for (const BlockId id : blocks) (void)watch_.was_written(id, kMemory);
  }
  EXPECT_LE(view_.asked - before, 40u);
  EXPECT_GE(view_.asked - before, 30u);
}

TEST_F(WriteWatchTest, BlocksOfSweepsAndThoseThatAreToLeaveAreNotAsked) {
  const BlockId large = bring(8, 8), done = bring(3);
  table_.block(done).leave_first = true;
  for (int i = 0; i < 2; ++i) {
    for (const PageNumber page : {3, 8}) write(page);
    look_at_others();
    EXPECT_FALSE(watch_.was_written(large, kMemory));
    EXPECT_FALSE(watch_.was_written(done, kMemory));
  }
}

TEST_F(WriteWatchTest, AViewThatDoesNotKnowIsAskedOnce) {
  view_.says_what_is_written = false;
  const BlockId id = bring(3);
  for (int i = 0; i < 100; ++i) {
    write(3);
    EXPECT_FALSE(watch_.was_written(id, kMemory));
  }
  EXPECT_EQ(view_.asked, 1u);
}

using WrittenPagesTest = testing::LonePagerTest;

// Pages that were written to all the time were taken out of view like others, so that each round cost a fault for each.
TEST_F(WrittenPagesTest, StayInView) {
  std::mt19937 random(1);
  const auto run = [&](int times) {
    int misses = 0;
    for (int i = 0; i < times; ++i) {
      for (PageNumber hot = 0; hot < 64; hot += 2) misses += !write(hot * 7);
      write(1024 + random() % 3000);
    }
    return misses;
  };
  run(3000);
  const int known = run(4000);
  view_.says_what_is_written = false;
  run(100);
  const int unknown = run(4000);
  EXPECT_LT(known * 4, unknown);
}

// Where all of memory is written to between two looks, something leaves all the same.
TEST_F(WrittenPagesTest, LeaveWhereThereIsNothingElse) {
  view_.always_written = true;
  for (int round = 0; round < 3; ++round) {
    for (PageNumber page = 0; page < 2 * kMemory; page += 5) write(page);
    for (PageNumber page = 1; page < 3 * kMemory; page += 3) write(page);
  }
  EXPECT_LE(pager_->resident_pages(), kMemory);
  EXPECT_EQ(pager_->check(), "");
}

}  // namespace
}  // namespace farheap::pager
