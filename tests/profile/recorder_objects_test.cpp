// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Large objects in a recording.
#include "profile/recorder.hpp"

#include <set>
#include <thread>

#include "recorder_world.hpp"

namespace farheap::profile::testing {
namespace {

constexpr std::uint64_t kLarge = kLargeObjectBytes;

TEST_F(RecorderTest, LargeObjectsAreNotedWithTheirBirthsAndDeaths) {
  const auto recorder = make();
  kAsk[0](*recorder, at(kLarge), kLarge);
  kAsk[1](*recorder, at(16 * kLarge + 64), 5 * kLarge + 1);
  kAsk[0](*recorder, at(64 * kLarge), kLarge - 1);  // it is not large
  recorder->freed(at(kLarge));
  recorder->freed(at(64 * kLarge));
  kAsk[0](*recorder, at(kLarge), 2 * kLarge);
  const Profile profile = read();
  const ProcessProfile& one = profile.processes[0];
  ASSERT_EQ(one.objects.size(), 3u);
  EXPECT_EQ(one.objects[0], (LargeObject{one.objects[0].site, kLarge, kLarge, 1, 3}));
  EXPECT_EQ(one.objects[1], (LargeObject{one.objects[1].site, 16 * kLarge + 64, 5 * kLarge + 1, 2, 0}));
  EXPECT_EQ(one.objects[2], (LargeObject{one.objects[2].site, kLarge, 2 * kLarge, 4, 0}));
  EXPECT_EQ(who_asked(one, one.objects[0].site), place_of_code(profile, g_returns_to[0]));
  EXPECT_EQ(who_asked(one, one.objects[1].site), place_of_code(profile, g_returns_to[1]));
  EXPECT_EQ(one.objects[2].site != 0, true);
}

TEST_F(RecorderTest, AnObjectWhoseBeginIsUnmappedIsGone) {
  const auto recorder = make();
  for (const std::uint64_t first : {0, 8, 16}) kAsk[0](*recorder, at(first * kLarge), 4 * kLarge);
  recorder->unmapped(at(9 * kLarge), 2 * kLarge);   // of the second the middle
  recorder->unmapped(at(16 * kLarge), 2 * kLarge);  // of the third the begin
  const ProcessProfile one = read().processes[0];
  ASSERT_EQ(one.objects.size(), 3u);
  EXPECT_EQ(one.objects[0].died, 0u);
  EXPECT_EQ(one.objects[1].died, 0u);
  EXPECT_NE(one.objects[2].died, 0u);
  recorder->unmapped(at(0), kHeapBytes);
  const ProcessProfile after = read().processes[0];
  for (const LargeObject& object : after.objects) EXPECT_NE(object.died, 0u);
}

// As who wants a mapping aligned does it. A plan at work heard of it, and the recorder did not.
TEST_F(RecorderTest, AnObjectIsGoneHoweverLittleOfItsBeginIsUnmapped) {
  const auto recorder = make();
  kAsk[0](*recorder, at(0), 4 * kLarge);
  recorder->unmapped(at(0), kPage);
  EXPECT_NE(read().processes[0].objects.at(0).died, 0u);
}

TEST_F(RecorderTest, WhatIsFreedTwiceDiesOnce) {
  const auto recorder = make();
  kAsk[0](*recorder, at(0), 4 * kLarge);
  recorder->freed(at(0));
  const auto died = read().processes[0].objects.at(0).died;
  recorder->freed(at(0));
  EXPECT_EQ(read().processes[0].objects.at(0).died, died);
}

TEST_F(RecorderTest, MoreLargeObjectsThanThereIsRoomForAreCounted) {
  const auto recorder = make({.objects = 3});
  for (std::uint64_t i = 0; i < 5; ++i) kAsk[0](*recorder, at(i * kLarge), kLarge);
  const ProcessProfile one = read().processes[0];
  EXPECT_EQ(one.objects.size(), 3u);
  EXPECT_EQ(one.without_room, 2u);
}

TEST_F(RecorderTest, LargeObjectsOfManyThreadsAreAllNoted) {
  const auto recorder = make();
  ask_pages(*recorder, 0, 0, 1);
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (std::uint64_t k = 0; k < 200; ++k) {
        const std::uint64_t offset = (16 + 64 * i + k % 32) * kLarge;
        kAsk[i](*recorder, at(offset), kLarge);
        recorder->freed(at(offset));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const ProcessProfile one = read().processes[0];
  ASSERT_EQ(one.objects.size(), 800u);
  std::set<std::uint64_t> times;
  for (const LargeObject& object : one.objects) {
    EXPECT_LT(object.born, object.died);
    times.insert(object.born);
    times.insert(object.died);
  }
  EXPECT_EQ(times.size(), 1600u);
  EXPECT_EQ(*times.rbegin(), 1600u);
}

}  // namespace
}  // namespace farheap::profile::testing
