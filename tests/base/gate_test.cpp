// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/gate.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

namespace farheap::base {
namespace {

TEST(Gate, NobodyIsInsideWhileItIsClosedUnderConstantTraffic) {
  Gate gate;
  std::atomic<bool> stop{false};
  std::atomic<unsigned long> begun{0}, ended{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        GatePass pass(&gate);
        begun.fetch_add(1, std::memory_order_relaxed);
        ended.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  for (int round = 0; round < 2000; ++round) {
    gate.close();
    unsigned long before = begun;
    ASSERT_EQ(before, ended);
    for (int i = 0; i < 100; ++i) __builtin_ia32_pause();
    ASSERT_EQ(begun, before);
    gate.open();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

// However many come while the last one is still inside: they are held back, and closing ends when that one leaves.
TEST(Gate, ClosingWaitsForThoseInsideOnly) {
  Gate gate;
  std::atomic<bool> closed{false}, stop{false};
  std::atomic<int> passes{0};
  std::vector<std::thread> traffic;
  for (int i = 0; i < 3; ++i) {
    traffic.emplace_back([&] {
      while (!stop) {
        GatePass pass(&gate);
        ++passes;
      }
    });
  }
  gate.enter();
  while (passes < 100) std::this_thread::yield();
  std::thread closer([&] {
    gate.close();
    closed = true;
  });
  for (int before = -1; before != passes;) {  // until the gate is seen to be closed
    before = passes;
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  }
  EXPECT_FALSE(closed);
  gate.leave();
  closer.join();
  stop = true;
  gate.open();
  for (std::thread& thread : traffic) thread.join();
}

TEST(Gate, ClosersTakeTurns) {
  Gate gate;
  int guarded = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 1000; ++round) {
        gate.close();
        ++guarded;
        gate.open();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(guarded, 4000);
}

TEST(Gate, LeavesErrnoAlone) {
  Gate gate;
  gate.close();
  std::thread waits([&] {
    errno = 77;
    GatePass pass(&gate);
    EXPECT_EQ(errno, 77);
  });
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  gate.open();
  waits.join();
}

}  // namespace
}  // namespace farheap::base
