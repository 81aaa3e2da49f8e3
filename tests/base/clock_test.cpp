// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/clock.hpp"

#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mutex>
#include <thread>

#include "base/condition.hpp"
#include "base/system_call.hpp"

namespace farheap::base {
namespace {

using namespace std::chrono_literals;

// In a child that may make no system call but exit(): signal 9 if it makes one.
template <class Body>
int end_without_system_calls(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    body();
    for (;;) system_call(SYS_exit, 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(Clock, IsTheKernelsMonotonicClock) {
  timespec before{}, after{};
  system_call(SYS_clock_gettime, CLOCK_MONOTONIC, &before);
  const auto now = Clock::now().time_since_epoch();
  system_call(SYS_clock_gettime, CLOCK_MONOTONIC, &after);
  EXPECT_GE(now, std::chrono::seconds(before.tv_sec) + std::chrono::nanoseconds(before.tv_nsec));
  EXPECT_LE(now, std::chrono::seconds(after.tv_sec) + std::chrono::nanoseconds(after.tv_nsec));
}

// A fault asks it several times.
TEST(Clock, IsNoSystemCallWhereTheKernelMapsItsClock) {
  const auto ask_the_c_library = [] {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
  };
  if (end_without_system_calls(ask_the_c_library) != 0) GTEST_SKIP() << "the C library's is one, too";
  EXPECT_EQ(end_without_system_calls([] { (void)Clock::now(); }), 0);
}

TEST(Clock, SleepsNoShorterThanItIsTold) {
  const auto start = Clock::now();
  sleep_for(20ms);
  EXPECT_GE(Clock::now() - start, 20ms);
}

TEST(Clock, AMomentThatHasPassedIsNotWaitedFor) {
  sleep_until(Clock::time_point{});
  sleep_until(Clock::time_point(-1s));
}

TEST(SystemCall, AnswersAsTheCLibraryDoes) {
  errno = 0;
  EXPECT_EQ(system_call(SYS_close, -1), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(system_call(SYS_getpid), getpid());
}

TEST(Condition, GivesUpAtTheMoment) {
  std::mutex mutex;
  Condition condition;
  std::unique_lock lock(mutex);
  const auto start = Clock::now();
  EXPECT_FALSE(condition.wait_for(lock, 20ms, [] { return false; }));
  EXPECT_GE(Clock::now() - start, 20ms);
  EXPECT_TRUE(lock.owns_lock());
  EXPECT_TRUE(condition.wait_for(lock, -1s, [] { return true; }));
  EXPECT_FALSE(condition.wait_for(lock, -1s, [] { return false; }));
}

// Two threads hand a ball to and fro, and each is told by the other alone.
TEST(Condition, NobodyWaitsForEver) {
  std::mutex mutex;
  Condition changed;
  int turn = 0;
  const auto play = [&](int me) {
    for (int i = 0; i < 10'000; ++i) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return turn == me; });
      turn = 1 - me;
      changed.notify_one();
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
  EXPECT_EQ(turn, 0);
}

TEST(Condition, TellsAll) {
  std::mutex mutex;
  Condition changed;
  bool is_open = false;
  std::thread waiting[4];
  for (auto& one : waiting) {
    one = std::thread([&] {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return is_open; });
    });
  }
  {
    std::lock_guard lock(mutex);
    is_open = true;
  }
  changed.notify_all();
  for (auto& one : waiting) one.join();
}

}  // namespace
}  // namespace farheap::base
