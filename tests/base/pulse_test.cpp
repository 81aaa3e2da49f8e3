// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Beats carry their own time, an hour ahead of the clock: then the keeper is awake for as long as the test lasts, and
// nothing depends on how fast the machine is.
#include "base/pulse.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

namespace farheap::base {
namespace {

class PulseTest : public testing::Test {
 protected:
  void TearDown() override {
    stopped_ = true;
    pulse_.wake();
    keeper_.join();
  }
  void wait_until_asleep() {
    while (!pulse_.keeper_sleeps()) std::this_thread::yield();
  }
  void beat_times(int count, std::chrono::nanoseconds apart) {
    for (int i = 0; i < count; ++i) pulse_.beat((time_ += apart).count());
  }
  Pulse pulse_;
  std::atomic<bool> stopped_ = false;
  std::chrono::nanoseconds time_ = std::chrono::steady_clock::now().time_since_epoch() + std::chrono::hours(1);
  std::thread keeper_{[this] {
    while (pulse_.wait_for_beats(stopped_)) std::this_thread::yield();
  }};
};

TEST_F(PulseTest, FaultsThatFollowEachOtherWakeTheKeeper) {
  wait_until_asleep();
  beat_times(100, std::chrono::microseconds(20));
  EXPECT_FALSE(pulse_.keeper_sleeps());
}

TEST_F(PulseTest, AFewFaultsDoNot) {
  wait_until_asleep();
  beat_times(4, std::chrono::microseconds(20));
  EXPECT_TRUE(pulse_.keeper_sleeps());
}

TEST_F(PulseTest, RareFaultsDoNot) {
  wait_until_asleep();
  beat_times(100, std::chrono::milliseconds(10));
  EXPECT_TRUE(pulse_.keeper_sleeps());
}

TEST_F(PulseTest, TheKeeperSleepsAgainWhenFaultsEnd) {
  wait_until_asleep();
  time_ -= std::chrono::hours(2);  // long past
  beat_times(100, std::chrono::microseconds(20));
  wait_until_asleep();
}

TEST(PulseAloneTest, StopBeforeTheKeeperHasBegun) {
  Pulse pulse;
  const std::atomic<bool> stopped = true;
  pulse.wake();
  EXPECT_FALSE(pulse.wait_for_beats(stopped));
}

// Any process of the run can write to the pulse: a keeper whose word it holds at "asleep" still ends.
TEST(PulseAloneTest, AKeeperEndsThoughSomebodyKeepsItsWord) {
  Pulse pulse;
  std::atomic<bool> stopped = false, done = false;
  std::thread keeper([&] { (void)pulse.wait_for_beats(stopped); });
  std::thread vandal([&] {
    while (!done) std::memset(static_cast<void*>(&pulse), 1, sizeof pulse);
  });
  while (!pulse.keeper_sleeps()) std::this_thread::yield();
  stopped = true;
  pulse.wake();
  keeper.join();
  done = true;
  vandal.join();
}

}  // namespace
}  // namespace farheap::base
