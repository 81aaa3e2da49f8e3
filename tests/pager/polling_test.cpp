// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/polling.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <map>

namespace farheap::pager {
namespace {

using namespace std::chrono_literals;

// Threads that fault each 100 us, and wait for a processor for so many percent of the time.
class Faulting {
 public:
  // The share of the time in which it was polled.
  double fault_for(std::chrono::milliseconds time, int delayed_percent, std::uint32_t threads = 1) {
    std::chrono::nanoseconds polled{0};
    const auto end = now_ + time;
    while (now_ < end) {
      now_ += 100us;
      for (std::uint32_t thread = 1; thread <= threads; ++thread) delays_[thread] += 1000 * delayed_percent;
      if (polling_.pays()) polled += 100us;
      polling_.note(now_, ++turn_ % threads + 1, [&](std::uint32_t thread) {
        ++looks_;
        return std::optional<std::int64_t>(delays_[thread]);
      });
    }
    return std::chrono::duration<double>(polled) / time;
  }
  [[nodiscard]] int looks() const { return looks_; }
  void end(std::uint32_t thread) { delays_.erase(thread); }

 private:
  Polling polling_;
  Polling::Clock::time_point now_{1h};
  std::map<std::uint32_t, std::int64_t> delays_;
  std::uint32_t turn_ = 0;
  int looks_ = 0;
};

TEST(Polling, PaysWhileAProcessorIsFree) {
  Faulting threads;
  EXPECT_EQ(threads.fault_for(10s, 0), 1.0);
  EXPECT_EQ(threads.fault_for(10s, 5), 1.0);
}

// A pager polled two million times in eight seconds, beside a program that needed both processors.
TEST(Polling, WasDoneForAsLongWhereAllProcessorsWereWanted) {
  Faulting threads;
  EXPECT_LT(threads.fault_for(8s, 30), 0.02);
  Faulting two;
  EXPECT_LT(two.fault_for(8s, 20, 2), 0.02);
}

TEST(Polling, BeginsAgainSoonWhenTheyAreFree) {
  Faulting threads;
  threads.fault_for(20s, 50);
  threads.fault_for(2s, 0);
  EXPECT_EQ(threads.fault_for(1s, 0), 1.0);
  threads.fault_for(200ms, 50);  // a short shortage after a long time without one
  threads.fault_for(200ms, 0);
  EXPECT_EQ(threads.fault_for(1s, 0), 1.0);
}

TEST(Polling, LooksSeldom) {
  Faulting threads;
  threads.fault_for(1s, 0, 3);
  EXPECT_LE(threads.looks(), 2 * 250);
}

TEST(RunDelay, IsKnownOfThreadsOfThisProcess) {
  const auto mine = static_cast<std::uint32_t>(syscall(SYS_gettid));
  if (access("/proc/self/schedstat", R_OK) != 0) GTEST_SKIP() << "this kernel does not count";
  const auto before = os::run_delay_ns(mine);
  ASSERT_TRUE(before);
  EXPECT_GE(os::run_delay_ns(mine), before);
  EXPECT_FALSE(os::run_delay_ns(0x7fffffff));
}

}  // namespace
}  // namespace farheap::pager
