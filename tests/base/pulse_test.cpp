// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Beats carry their own time, an hour ahead of the clock: then the keeper is awake for as long as the test lasts, and
// nothing depends on how fast the machine is.
#include "base/pulse.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace farheap::base {
namespace {

class PulseTest : public testing::Test {
 protected:
  void TearDown() override {
    pulse_.stop();
    keeper_.join();
  }
  void wait_until_asleep() {
    while (!pulse_.keeper_sleeps()) std::this_thread::yield();
  }
  void beat_times(int count, std::chrono::nanoseconds apart) {
    for (int i = 0; i < count; ++i) pulse_.beat((time_ += apart).count());
  }
  Pulse pulse_;
  std::chrono::nanoseconds time_ = std::chrono::steady_clock::now().time_since_epoch() + std::chrono::hours(1);
  std::thread keeper_{[this] {
    while (pulse_.wait_for_beats()) std::this_thread::yield();
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
  pulse.stop();
  EXPECT_FALSE(pulse.wait_for_beats());
}

}  // namespace
}  // namespace farheap::base
