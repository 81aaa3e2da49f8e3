// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the kernel is asked for, in a file in place of its device.
#include "tool/keep_awake.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>

namespace farheap::tool {
namespace {

using std::chrono::steady_clock;

class KeepAwakeTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "latency-" + std::to_string(getpid());
    file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ASSERT_GE(file_, 0);
  }
  void TearDown() override {
    close(file_);
    unlink(path_.c_str());
  }
  // -1: nothing was asked.
  [[nodiscard]] int asked() const {
    int microseconds = -1;
    return pread(file_, &microseconds, sizeof microseconds, 0) == sizeof microseconds ? microseconds : -1;
  }
  // A keeper that does not do what it should ends the test, and does not hang it.
  template <class Condition>
  [[nodiscard]] static bool comes_true(Condition condition) {
    const auto until = steady_clock::now() + std::chrono::minutes(1);
    while (!condition() && steady_clock::now() < until) usleep(1000);
    return condition();
  }
  [[nodiscard]] bool becomes(int microseconds) const {
    return comes_true([&] { return asked() == microseconds; });
  }
  [[nodiscard]] bool falls_asleep() const {
    return comes_true([&] { return pulse_.keeper_sleeps(); });
  }
  // A hundred faults; they seem to go on for `ahead`.
  void beat(steady_clock::duration ahead) {
    const auto first = (steady_clock::now() + ahead).time_since_epoch();
    for (int i = 0; i < 100; ++i) pulse_.beat(std::chrono::nanoseconds(first + std::chrono::microseconds(i)).count());
  }
  std::string path_;
  int file_ = -1;
  base::Pulse pulse_;
};

TEST_F(KeepAwakeTest, ProcessorsAreToAnswerAtOnceWhileFaultsBeatAndOnlyThen) {
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  if (processors < 2 || processors > KeepAwake::kMostPolling) {
    std::fprintf(stderr, "keep_awake_test: NOT TESTED: nothing is asked for with %ld processors\n", processors);
    GTEST_SKIP() << "nothing is asked for with " << processors << " processors";
  }
  KeepAwake keep_awake(pulse_, path_.c_str());
  ASSERT_TRUE(falls_asleep());
  EXPECT_EQ(asked(), -1);
  beat(std::chrono::hours(1));
  EXPECT_TRUE(becomes(0));
  beat(-std::chrono::hours(2));
  EXPECT_TRUE(becomes(2'000'000'000));
  ASSERT_TRUE(falls_asleep());
  beat(std::chrono::hours(1));
  EXPECT_TRUE(becomes(0));
}

TEST_F(KeepAwakeTest, WithoutTheDeviceAThreadSpins) {
  ASSERT_FALSE(LatencyRequest("/nonexistent/device").is_open());
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
    std::fprintf(stderr, "keep_awake_test: NOT TESTED: one processor never sleeps while faults beat\n");
    GTEST_SKIP() << "one processor never sleeps while faults beat";
  }
  KeepAwake keep_awake(pulse_, "/nonexistent/device");
  ASSERT_TRUE(falls_asleep());
  beat(std::chrono::hours(1));
  EXPECT_FALSE(pulse_.keeper_sleeps());
  // And it ends with the scope, though faults beat.
}

}  // namespace
}  // namespace farheap::tool
