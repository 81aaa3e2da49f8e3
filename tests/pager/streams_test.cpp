// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/streams.hpp"

#include <gtest/gtest.h>

#include <random>

namespace farheap::pager {
namespace {

constexpr std::uint32_t kLargest = 512;

// Fetches what it is advised to, and touches the page behind it next.
std::uint32_t sweep(Streams& streams, PageNumber from, int misses) {
  std::uint32_t pages = 0;
  for (int i = 0; i < misses; ++i) {
    const Streams::Advice advice = streams.touched(from);
    pages = advice.pages;
    from += advice.pages;
    streams.continues_at(from);
  }
  return pages;
}

TEST(Streams, AForwardSweepGrowsToTheLargestBlock) {
  Streams streams(kLargest);
  EXPECT_FALSE(streams.touched(100).sequential);
  EXPECT_TRUE(streams.touched(101).sequential);
  EXPECT_EQ(sweep(streams, 5000, 20), kLargest);
}

TEST(Streams, ABackwardSweepIsFound) {
  Streams streams(kLargest);
  Streams::Advice advice;
  for (PageNumber page = 1000; page > 980; --page) advice = streams.touched(page);
  EXPECT_TRUE(advice.sequential && advice.backward);
  EXPECT_GT(advice.pages, 1u);
}

TEST(Streams, ManySweepsAtOnceAreAllFollowed) {
  Streams streams(kLargest);
  PageNumber at[8];
  std::uint32_t pages[8] = {};
  for (std::size_t i = 0; i < 8; ++i) at[i] = i * 1'000'000;
  for (int round = 0; round < 12; ++round) {
    for (std::size_t i = 0; i < 8; ++i) {
      const Streams::Advice advice = streams.touched(at[i]);
      if (round > 1) {
        EXPECT_TRUE(advice.sequential) << "stream " << i << " round " << round;
      }
      pages[i] = advice.pages;
      at[i] += advice.pages;
      streams.continues_at(at[i]);
    }
  }
  for (const std::uint32_t one : pages) EXPECT_EQ(one, kLargest);
}

// What a transform along the slowest axis does: a plane between one touch and the next, and then all of them again, one
// page further.
TEST(Streams, HundredsOfSweepsInTurnAreAllFollowed) {
  Streams streams(kLargest);
  constexpr PageNumber kPlane = 256;
  for (PageNumber row = 0; row < 4; ++row) {
    for (PageNumber plane = 0; plane < 300; ++plane) {
      EXPECT_EQ(streams.touched(plane * kPlane + row).sequential, row > 1) << "plane " << plane << " row " << row;
    }
  }
}

// Every second marker used to be taken for the beginning of a new stream, and the windows shrank, as they are shared
// out between streams.
TEST(Streams, AStreamIsNoticedWhereItIsReadAhead) {
  Streams streams(kLargest);
  PageNumber at = 1000;
  EXPECT_FALSE(streams.touched(at).sequential);
  ASSERT_TRUE(streams.touched(++at).sequential);
  for (int window = 0; window < 20; ++window) {
    streams.continues_between(at + 1, at + 1024);
    at += 256;  // a marker
    EXPECT_TRUE(streams.touched(at).sequential) << window;
    EXPECT_EQ(streams.active(), window == 0 ? streams.active() : 1u) << window;
  }
  // Whoever touches a page there much later is somebody else.
  streams.continues_between(at + 1, at + 1024);
  for (PageNumber other = 0; other < 100; ++other) (void)streams.touched(1'000'000 + other * 1000);
  EXPECT_FALSE(streams.touched(at + 500).sequential);
}

TEST(Streams, AStreamThatWasSaidNeedsNoMisses) {
  for (const bool backward : {false, true}) {
    Streams streams(kLargest);
    streams.begin(5000, backward, 256);
    const Streams::Advice advice = streams.touched(5000);
    EXPECT_TRUE(advice.sequential);
    EXPECT_EQ(advice.backward, backward);
    EXPECT_EQ(advice.pages, kLargest);
    EXPECT_FALSE(streams.touched(backward ? 5010 : 4990).sequential);
  }
}

TEST(Streams, APresumedStreamGoesOnAsOneThatWasSeen) {
  for (const bool backward : {false, true}) {
    Streams streams(kLargest);
    ASSERT_FALSE(streams.touched(5000).sequential);
    const Streams::Advice presumed = streams.presume(backward, 64);
    EXPECT_TRUE(presumed.sequential);
    EXPECT_EQ(presumed.backward, backward);
    EXPECT_EQ(presumed.pages, 64u);
    const PageNumber next = backward ? 4936 : 5064;
    streams.continues_at(next);
    const Streams::Advice advice = streams.touched(next);
    EXPECT_TRUE(advice.sequential);
    EXPECT_EQ(advice.backward, backward);
    EXPECT_EQ(advice.pages, 128u);
  }
}

TEST(Streams, RandomTouchesAreNoStream) {
  Streams streams(kLargest);
  std::mt19937_64 random(3);
  int sequential = 0;
  for (int i = 0; i < 10'000; ++i) sequential += streams.touched(random() % 10'000'000).sequential;
  EXPECT_LT(sequential, 20);
}

TEST(Streams, RandomTouchesOfAMiddlingTableAreHardlyEverAStream) {
  Streams streams(kLargest);
  std::mt19937_64 random(4);
  int sequential = 0;
  for (int i = 0; i < 100'000; ++i) sequential += streams.touched(random() % 131'072).sequential;
  EXPECT_LT(sequential, 1'000) << "each reads pages that nobody asked for";
}

TEST(Streams, TheFirstPageOfAllMisleadsNobody) {
  Streams streams(kLargest);
  EXPECT_FALSE(streams.touched(0).sequential);
  EXPECT_FALSE(streams.touched(~PageNumber{0} / 4096).sequential);
  const Streams::Advice again = streams.touched(1);
  EXPECT_FALSE(again.backward);
}

}  // namespace
}  // namespace farheap::pager
