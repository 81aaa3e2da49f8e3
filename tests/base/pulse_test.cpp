// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/pulse.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <chrono>
#include <thread>

namespace farheap::base {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t now() { return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count(); }

// Processor time that the keeper took while `work` ran.
template <class Work>
double keeper_seconds(Pulse& pulse, Work work) {
  clockid_t clock{};
  std::thread keeper([&] { pulse.keep_awake(); });
  pthread_getcpuclockid(keeper.native_handle(), &clock);
  work();
  timespec used{};
  clock_gettime(clock, &used);
  pulse.stop();
  keeper.join();
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

void beat_for(Pulse& pulse, std::chrono::milliseconds time, std::chrono::microseconds pause) {
  const auto until = Clock::now() + time;
  while (Clock::now() < until) {
    pulse.beat(now());
    const auto next = Clock::now() + pause;
    while (Clock::now() < next) {
    }
  }
}

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(PulseTest, TheKeeperSpinsWhileFaultsBeat) {
  Pulse pulse;
  EXPECT_GT(keeper_seconds(pulse, [&] { beat_for(pulse, milliseconds(300), microseconds(20)); }), 0.01);
}

TEST(PulseTest, TheKeeperSleepsWhenNothingBeats) {
  Pulse pulse;
  EXPECT_LT(keeper_seconds(pulse, [] { std::this_thread::sleep_for(milliseconds(300)); }), 0.01);
}

TEST(PulseTest, TheKeeperSleepsBetweenRareFaults) {
  Pulse pulse;
  EXPECT_LT(keeper_seconds(pulse, [&] { beat_for(pulse, milliseconds(300), milliseconds(10)); }), 0.02);
}

TEST(PulseTest, StopBeforeTheKeeperHasBegun) {
  Pulse pulse;
  pulse.stop();
  pulse.keep_awake();  // returns
}

}  // namespace
}  // namespace farheap::base
