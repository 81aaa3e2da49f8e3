// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is known of loops that were said: where they are expected, where they end, and how often they come; and that
// nothing is done for long about one that does not come.
#include "pager/loops.hpp"

#include <gtest/gtest.h>

#include <random>

#include "array_world.hpp"

namespace farheap::pager {
namespace {

using Way = Loops::Way;
constexpr std::uint64_t kVisit = 100;
constexpr PageNumber kFar = 1'000'000;

class LoopsTest : public ::testing::Test {
 protected:
  // Whether anything was new; `gap` is what it says.
  bool begin(PageNumber first, PageNumber end, std::uint32_t left, bool backward = false) {
    return loops.begin(first, end, backward, left, kVisit, gap);
  }
  Loops loops;
  std::uint32_t gap = 0;
};

TEST_F(LoopsTest, ALoopIsExpectedBehindWhatItPassedUnseen) {
  ASSERT_TRUE(begin(1000, 9000, 1));
  EXPECT_EQ(loops.touched(999, false).way, Way::kNone);
  EXPECT_EQ(loops.touched(9000, false).way, Way::kNone);
  const auto found = loops.touched(5000, false);
  EXPECT_EQ(found.way, Way::kForward);
  EXPECT_EQ(found.passed, 1000u);
  EXPECT_EQ(found.to, 5001u);
  EXPECT_EQ(loops.touched(4000, false).way, Way::kNone) << "it was there before";
}

TEST_F(LoopsTest, ABackwardLoopIsExpectedBelow) {
  ASSERT_TRUE(begin(1000, 9000, 1, true));
  const auto found = loops.touched(7000, false);
  EXPECT_EQ(found.way, Way::kBackward);
  EXPECT_EQ(found.passed, 7000u);
  EXPECT_EQ(found.to, 9000u);
  EXPECT_EQ(loops.touched(8000, false).way, Way::kNone);
}

// Each would read a window for one page.
TEST_F(LoopsTest, ALoopThatDoesNotComeIsSoonNotExpectedAnyMore) {
  ASSERT_TRUE(begin(0, kFar, 1));
  int expected = 0;
  for (PageNumber page = 100; page < kFar; page += 1000) expected += loops.touched(page, false).way != Way::kNone;
  EXPECT_EQ(expected, 2);
  ASSERT_TRUE(begin(0, kFar, 10'000));
  EXPECT_EQ(loops.touched(100, false).way, Way::kForward) << "said again, it is believed again";
  EXPECT_EQ(loops.touched(300'000, true).way, Way::kNone) << "the stream knows";
  EXPECT_EQ(loops.touched(500'000, false).way, Way::kForward);
  EXPECT_EQ(loops.touched(600'000, false).way, Way::kForward) << "it did come at 300,000";
}

// Several accesses of a loop say the same; as the first of them makes room, pages leave before the next. Taken for the
// next round of the loop, that made a period of some pages, and its whole range left too soon.
TEST_F(LoopsTest, WhatIsSaidTwiceBeforeALoopIsOneLoop) {
  ASSERT_TRUE(begin(1000, 9000, 5000));
  EXPECT_FALSE(begin(1001, 9000, 5000 + kVisit - 1));
  EXPECT_TRUE(begin(1000, 9000, 5000 + kVisit));
  EXPECT_EQ(gap, kVisit);
  (void)loops.touched(1000, true);
  EXPECT_TRUE(begin(1000, 9000, 5000 + kVisit + 1)) << "it has been at its begin";
  EXPECT_EQ(gap, 0u);
}

TEST_F(LoopsTest, HowLongALoopTookToComeBackIsKnownTheSecondTime) {
  ASSERT_TRUE(begin(1000, 9000, 500));
  EXPECT_EQ(gap, 0u);
  ASSERT_TRUE(begin(1000, 9000, 4500, true));
  EXPECT_EQ(gap, 0u) << "the other way it is another one";
  ASSERT_TRUE(begin(1000, 5000, 4500));
  EXPECT_EQ(gap, 0u);
  ASSERT_TRUE(begin(1000, 9000, 4500));
  EXPECT_EQ(gap, 4000u);
}

TEST_F(LoopsTest, AStreamStopsWhereItsLoopEnds) {
  EXPECT_EQ(loops.end_of(100, kFar), kFar);
  EXPECT_EQ(loops.first_of(100), 0u);
  ASSERT_TRUE(begin(1000, 2000, 1));
  EXPECT_EQ(loops.end_of(1000, kFar), 2000u);
  EXPECT_EQ(loops.end_of(1999, kFar), 2000u);
  EXPECT_EQ(loops.end_of(2000, kFar), 2000u) << "it has come to its end";
  EXPECT_EQ(loops.end_of(2001, kFar), kFar) << "somebody else";
  EXPECT_EQ(loops.end_of(1500, 1600), 1600u);
  ASSERT_TRUE(begin(500, 3000, 1));
  EXPECT_EQ(loops.end_of(1500, kFar), 3000u) << "the outer one goes on";
  ASSERT_TRUE(begin(5000, 6000, 1, true));
  EXPECT_EQ(loops.first_of(6000), 5000u);
  EXPECT_EQ(loops.first_of(5000), 5000u);
  EXPECT_EQ(loops.first_of(4999), 0u);
}

TEST_F(LoopsTest, RowsThatFollowEachOtherHaveNoEnd) {
  ASSERT_TRUE(begin(1000, 1300, 1));
  ASSERT_TRUE(begin(1300, 1600, 1));
  EXPECT_EQ(loops.end_of(1400, kFar), 1600u) << "two may be chance";
  ASSERT_TRUE(begin(1600, 1900, 1));
  EXPECT_EQ(loops.end_of(1700, kFar), kFar);
  ASSERT_TRUE(begin(1900, 2200, 1));
  EXPECT_EQ(loops.end_of(2000, kFar), kFar);
}

TEST_F(LoopsTest, TheOldestIsForgotten) {
  for (PageNumber i = 0; i < 33; ++i) ASSERT_TRUE(begin(i * 10'000, i * 10'000 + 1000, 1));
  EXPECT_EQ(loops.end_of(500, kFar), kFar);
  EXPECT_EQ(loops.end_of(10'500, kFar), 11'000u);
}

// ---- in the pager

constexpr std::uint64_t kPages = 8192, kMemory = 2048;

class LoopsInThePager : public ::testing::TestWithParam<bool> {
 protected:
  LoopsInThePager() {
    for (PageNumber page = 0; page < kPages; ++page) touch(page);
  }
  void touch(PageNumber page) {
    world_.touch(page, true, buffer_[0].data(),
                 [&](testing::PageBytes& bytes) { std::memcpy(bytes.data(), &++written_, sizeof written_); });
  }
  void walk(PageNumber first, PageNumber end) {
    for (PageNumber i = first; i < end; ++i) touch(backward() ? first + end - 1 - i : i);
  }
  void say(PageNumber first, PageNumber end) {
    world_.pager->hint({backward() ? HintKind::kLoopBackward : HintKind::kLoopForward, first, end - first});
  }
  [[nodiscard]] bool backward() const { return GetParam(); }
  [[nodiscard]] std::uint64_t pages_read() const { return world_.counters.bytes_read / base::kPageBytes; }
  // As far as can be seen: what comes still later is missed, and fails no test.
  void wait_until_quiet() {
    for (std::uint64_t before = ~pages_read(); before != pages_read();) {
      before = pages_read();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  testing::World world_{{.pages = kPages, .memory_pages = kMemory, .policy = PolicyKind::kPeriod}};
  std::vector<testing::PageBytes> buffer_{512};
  std::uint64_t written_ = 0;
};

TEST_P(LoopsInThePager, NothingIsReadBeyondALoopsEnd) {
  wait_until_quiet();
  const auto none_has_come = [&](PageNumber first, PageNumber end) {
    for (PageNumber page = first; page < end; ++page) {
      if (world_.pager->state(page) != PageState::kStored) return false;
    }
    return true;
  };
  ASSERT_TRUE(none_has_come(900, 1400)) << "left long ago";
  say(1000, 1300);
  walk(1000, 1300);
  wait_until_quiet();
  EXPECT_TRUE(none_has_come(900, 1000) && none_has_come(1300, 1400));
}

TEST_P(LoopsInThePager, WhatALoopBeginsWithIsOnItsWayBeforeItIsTouched) {
  wait_until_quiet();
  const std::uint64_t before = pages_read();
  say(1000, 4000);
  // A reader brings them, when it has its turn.
  for (int looks = 0; looks < 60'000 && pages_read() - before < 32; ++looks) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GE(pages_read() - before, 32u);
  wait_until_quiet();
  EXPECT_LE(pages_read() - before, kMemory / 8) << "no more than it will need soon";
}

INSTANTIATE_TEST_SUITE_P(Ways, LoopsInThePager, ::testing::Bool(),
                         [](const auto& one) { return one.param ? "Backward" : "Forward"; });

// Look-ups at random where a loop was said must not read a window each.
TEST(LoopsInUse, WhatIsLookedUpAtRandomIsReadPageByPage) {
  for (const bool said : {false, true}) {
    testing::World world({.pages = kPages, .memory_pages = kMemory, .policy = PolicyKind::kPeriod});
    std::vector<testing::PageBytes> buffer(512);
    const auto touch = [&](PageNumber page) {
      world.touch(page, true, buffer[0].data(), [&](testing::PageBytes& bytes) { std::memset(bytes.data(), 1, 8); });
    };
    for (PageNumber page = 0; page < kPages; ++page) touch(page);
    if (said) world.pager->hint({HintKind::kLoopForward, 0, kPages});
    const std::uint64_t before = world.counters.bytes_read;
    std::mt19937_64 random(3);
    for (int i = 0; i < 2000; ++i) touch(random() % kPages);
    EXPECT_LT((world.counters.bytes_read - before) / base::kPageBytes, 6000u) << said;
  }
}

}  // namespace
}  // namespace farheap::pager
