// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/runtime_threads.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>

namespace farheap::os {
namespace {

std::atomic<bool> g_ends{false};
void* wait_for_the_end(void* argument) {
  g_ends.wait(false);
  return argument;
}

TEST(RuntimeThreads, AnEndingThreadReturnsWhatItsBodyDoes) {
  g_ends = true;
  int mine = 0;
  const auto thread = start_ending_thread(wait_for_the_end, &mine);
  ASSERT_TRUE(thread) << thread.error().message();
  void* returned = nullptr;
  ASSERT_EQ(pthread_join(*thread, &returned), 0);
  EXPECT_EQ(returned, &mine);
}

// AddressSanitizer's allocator is not made whole in a child: one that was forked while a thread of its parent allocated
// waited for ever. It shows in a build with that sanitizer alone.
TEST(RuntimeThreads, AChildForkedRightAfterAStartAllocates) {
  for (int round = 0; round < 300; ++round) {
    g_ends = false;
    std::array<pthread_t, 4> threads;
    for (auto& thread : threads) {
      const auto started = start_ending_thread(wait_for_the_end, nullptr);
      ASSERT_TRUE(started) << started.error().message();
      thread = *started;
    }
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);  // ends one that waits for ever
      for (std::size_t bytes = 16; bytes < 16384; bytes += bytes / 4) {
        for (int i = 0; i < 20; ++i) static_cast<volatile char*>(malloc(bytes))[0] = 1;
      }
      _exit(0);
    }
    g_ends = true;
    g_ends.notify_all();
    for (const auto thread : threads) pthread_join(thread, nullptr);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << "in round " << round;
  }
}

}  // namespace
}  // namespace farheap::os
