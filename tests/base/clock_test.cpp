// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/clock.hpp"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <iterator>
#include <mutex>
#include <thread>

#include "base/condition.hpp"
#include "base/system_call.hpp"

namespace farheap::base {
namespace {

using namespace std::chrono_literals;

// In a child that is killed when it asks the kernel for the time.
template <class Body>
int end_without_asking(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog filter{std::size(rules), rules};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) _exit(1);
    body();
    _exit(0);
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
  if (end_without_asking(ask_the_c_library) != 0)
    GTEST_SKIP() << "the C library's is one, too, or filters are not allowed";
  EXPECT_EQ(end_without_asking([] { (void)Clock::now(); }), 0);
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
  Mutex mutex;
  Condition condition;
  const LockGuard lock(mutex);
  const auto start = Clock::now();
  EXPECT_FALSE(condition.wait_for(mutex, 20ms, [] { return false; }));
  EXPECT_GE(Clock::now() - start, 20ms);
  std::thread([&] { EXPECT_FALSE(mutex.try_lock()); }).join();
  EXPECT_TRUE(condition.wait_for(mutex, -1s, [] { return true; }));
  EXPECT_FALSE(condition.wait_for(mutex, -1s, [] { return false; }));
}

// Two threads hand a ball to and fro, and each is told by the other alone.
TEST(Condition, NobodyWaitsForEver) {
  Mutex mutex;
  Condition changed;
  int turn = 0;
  const auto play = [&](int me) {
    for (int i = 0; i < 10'000; ++i) {
      const LockGuard lock(mutex);
      while (turn != me) changed.wait(mutex);
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
  Mutex mutex;
  Condition changed;
  bool is_open = false;
  std::thread waiting[4];
  for (auto& one : waiting) {
    one = std::thread([&] {
      const LockGuard lock(mutex);
      while (!is_open) changed.wait(mutex);
    });
  }
  {
    const LockGuard lock(mutex);
    is_open = true;
  }
  changed.notify_all();
  for (auto& one : waiting) one.join();
}

}  // namespace
}  // namespace farheap::base
