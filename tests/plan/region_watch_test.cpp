// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/region_watch.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace farheap::plan::region_watch_test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kCost{64};  // to read it

// One thread waits, 0.1 ms at a time, until the region is to be read: so long it took. Nothing: not within `at_most`.
std::optional<milliseconds> waited_until_read(RegionTurns& turns, microseconds from,
                                              milliseconds at_most = seconds(900)) {
  for (microseconds waited{100}; waited < at_most; waited += microseconds(100)) {
    if (!turns.waited(from + waited, microseconds(100), kCost)) continue;
    turns.read(from + waited + kCost);
    return std::chrono::duration_cast<milliseconds>(waited);
  }
  return std::nullopt;
}

TEST(RegionTurns, ARegionIsReadWhenAsMuchWasWaitedAsItTakes) {
  RegionTurns turns;
  EXPECT_EQ(waited_until_read(turns, seconds(10)), kCost);
  EXPECT_EQ(waited_until_read(turns, seconds(20)), kCost) << "it has helped for ten seconds";
  EXPECT_EQ(waited_until_read(turns, seconds(30)), kCost);
}

TEST(RegionTurns, WhatIsWaitedForNowAndThenIsNoReason) {
  RegionTurns turns;
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_FALSE(turns.waited(milliseconds(10 * i), microseconds(100), kCost)) << "a hundredth of the time";
  }
}

TEST(RegionTurns, WhatThreadsWaitForAtOnceCountsOnce) {
  RegionTurns turns;
  microseconds now = seconds(10);
  int waits = 0;
  for (bool is_read = false; !is_read; now += microseconds(100)) {
    for (int thread = 0; thread < 4 && !is_read; ++thread, ++waits)
      is_read = turns.waited(now, microseconds(100), kCost);
  }
  EXPECT_NEAR(waits, 4 * 640, 8);
}

TEST(RegionTurns, WhatIsWaitedForWhileItIsReadDoesNotCount) {
  RegionTurns turns;
  EXPECT_TRUE(turns.waited(seconds(10), kCost, kCost));
  EXPECT_FALSE(turns.waited(seconds(11), seconds(1), kCost));
  turns.read(seconds(11));
  EXPECT_FALSE(turns.waited(seconds(11) + microseconds(50), microseconds(100), kCost)) << "most of it was before";
}

// It was read, and is waited for at once again: memory has no room for it.
TEST(RegionTurns, WhatDoesNotHelpIsTriedLessAndLess) {
  RegionTurns turns;
  microseconds now = seconds(10);
  std::vector<milliseconds> waits;
  for (int i = 0; i < 5; ++i) {
    const auto waited = waited_until_read(turns, now);
    ASSERT_TRUE(waited.has_value());
    waits.push_back(*waited);
    now += *waited + kCost;
  }
  EXPECT_EQ(waits, (std::vector<milliseconds>{kCost, kCost, 2 * kCost, 4 * kCost, 8 * kCost}));
  EXPECT_EQ(waited_until_read(turns, now + seconds(60)), 16 * kCost) << "as the last time";
  EXPECT_EQ(waited_until_read(turns, now + seconds(200)), kCost) << "that has helped";
}

// A program that goes on to something else every second or so.
TEST(RegionTurns, WhatHelpsForAWhileIsReadEachTime) {
  RegionTurns turns;
  for (int phase = 0; phase < 20; ++phase) {
    EXPECT_EQ(waited_until_read(turns, seconds(10 + phase)), kCost) << phase;
  }
}

// However large it is.
TEST(RegionTurns, ALargeRegionIsReadToo) {
  RegionTurns turns;
  bool is_read = false;
  for (int i = 1; i <= 40 && !is_read; ++i)
    is_read = turns.waited(seconds(10) + milliseconds(100 * i), milliseconds(100), seconds(3));
  EXPECT_TRUE(is_read);
}

// ---- with its thread

struct World {
  World() { watch.paging_begins(); }
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<unsigned> needed;
  std::atomic<std::uint64_t> bytes_read{0};
  std::uint64_t most = 10'000'000;

  // Pages 0 to 99 are of no region, of each hundred that follows of the next one. Never destroyed, as its thread.
  RegionWatch& watch =
      *new RegionWatch({.region_of = [](pager::PageNumber page) { return static_cast<unsigned>(page / 100); },
                        .bytes_of = [](unsigned region) { return 1'000'000 * region; },
                        .most_bytes = [this] { return most; },
                        .need =
                            [this](unsigned region) {
                              const std::lock_guard lock(mutex);
                              needed.push_back(region);
                              bytes_read += 1'000'000 * region;
                              changed.notify_all();
                            },
                        .bytes_read = [this] { return bytes_read.load(); }});
  void wait_for_need(std::size_t count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return needed.size() >= count; });
  }
};

TEST(RegionWatch, ReadsTheRegionThatIsWaitedFor) {
  auto& world = *new World;
  world.watch.ended(50, 0, seconds(1), 1);    // of none
  world.watch.ended(250, 0, seconds(1), 0);   // not read
  world.watch.ended(1150, 0, seconds(1), 1);  // too large
  world.watch.ended(350, 0, seconds(1), 1);
  world.wait_for_need(1);
  world.watch.ended(250, 0, seconds(1), 1);
  world.wait_for_need(2);
  const std::lock_guard lock(world.mutex);
  EXPECT_EQ(world.needed, (std::vector<unsigned>{3, 2}));
}

TEST(RegionWatch, HearsOfManyHandlersAtOnce) {
  auto& world = *new World;
  std::vector<std::thread> handlers;
  for (pager::PageNumber i = 0; i < 4; ++i) {
    handlers.emplace_back([&, i] {
      for (pager::PageNumber k = 0; k < 1'000; ++k) {
        world.watch.ended(100 + 100 * (k % 8) + i, 0, milliseconds(50), 1);
      }
    });
  }
  for (std::thread& one : handlers) one.join();
  world.wait_for_need(8);
  const std::lock_guard lock(world.mutex);
  for (const unsigned region : world.needed) EXPECT_TRUE(region >= 1 && region <= 8);
}

}  // namespace
}  // namespace farheap::plan::region_watch_test
