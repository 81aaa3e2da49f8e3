// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/fault_door.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace farheap::pager {
namespace {

class FaultDoorTest : public ::testing::Test {
 protected:
  void until_wanted() const {
    while (!door_.is_wanted()) std::this_thread::yield();
  }
  FaultDoor door_;
  base::Mutex mutex_;
  base::SharedMutex leaving_view_;
};

TEST_F(FaultDoorTest, AFaultThatFindsTheMutexFreeHasNotWaited) {
  door_.lock(mutex_);
  EXPECT_FALSE(door_.is_wanted());
  mutex_.unlock();
}

// With the mutex it is no longer at the door, and only then: who saw it there and does not any more comes after it.
TEST_F(FaultDoorTest, WhoComesBackWhenNobodyIsAtTheDoorComesAfterTheFault) {
  for (int round = 0; round < 200; ++round) {
    bool was_there = false;
    mutex_.lock();
    std::thread fault([&] {
      door_.lock(mutex_);
      was_there = true;
      mutex_.unlock();
    });
    until_wanted();
    while (door_.is_wanted()) door_.let_through(mutex_);
    EXPECT_TRUE(was_there);
    mutex_.unlock();
    fault.join();
  }
}

TEST_F(FaultDoorTest, AFaultThatDoesNotComeIsNotWaitedForForEver) {
  mutex_.lock();
  std::thread fault([&] {
    door_.lock(mutex_);
    mutex_.unlock();
  });
  until_wanted();
  door_.wait();  // in vain: it waits for what this thread has
  EXPECT_EQ(door_.waiting(), 1u);
  mutex_.unlock();
  fault.join();
  EXPECT_FALSE(door_.is_wanted());
}

// Those that take pages out of view share it, and as long as one of them has it, no thread of the program is there.
TEST_F(FaultDoorTest, AThreadOfTheProgramIsLetThroughBetweenThoseThatShare) {
  bool was_there = false;
  std::atomic<bool> second_has_it = false, second_may_go = false;
  std::thread second([&] {
    door_.share(leaving_view_);
    second_has_it = true;
    while (!second_may_go) std::this_thread::yield();
    leaving_view_.unlock_shared();
  });
  while (!second_has_it) std::this_thread::yield();
  door_.share(leaving_view_);
  std::thread program([&] {
    const Still still(door_, leaving_view_);
    was_there = true;
  });
  until_wanted();
  leaving_view_.unlock_shared();
  door_.wait();
  EXPECT_EQ(door_.waiting(), 1u);  // the second has it still
  second_may_go = true;
  while (door_.is_wanted()) door_.wait();
  door_.share(leaving_view_);
  EXPECT_TRUE(was_there);
  leaving_view_.unlock_shared();
  second.join();
  program.join();
}

// Two that take turns at sharing never left the lock free, and who wanted it alone starved.
TEST_F(FaultDoorTest, WhoWantsItAloneComesBetweenTwoWhoseSharesOverlap) {
  std::atomic<bool> over{false};
  std::atomic<int> inside{0};
  std::vector<std::thread> evictors;
  for (int i = 0; i < 2; ++i) {
    evictors.emplace_back([&] {
      while (!over) {
        door_.share(leaving_view_);
        ++inside;
        // Until the other one is here, too; but one that waits for somebody at the door does not come.
        while (inside < 2 && !over && !door_.is_wanted()) std::this_thread::yield();
        --inside;
        leaving_view_.unlock_shared();
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    const Still still(door_, leaving_view_);
    EXPECT_EQ(inside, 0);
  }
  over = true;
  for (std::thread& one : evictors) one.join();
}

TEST_F(FaultDoorTest, AllWhoWaitAreCounted) {
  mutex_.lock();
  std::thread faults[3];
  for (std::thread& fault : faults) {
    fault = std::thread([&] {
      door_.lock(mutex_);
      mutex_.unlock();
    });
  }
  while (door_.waiting() != 3) std::this_thread::yield();
  mutex_.unlock();
  for (std::thread& fault : faults) fault.join();
  EXPECT_EQ(door_.waiting(), 0u);
}

}  // namespace
}  // namespace farheap::pager
