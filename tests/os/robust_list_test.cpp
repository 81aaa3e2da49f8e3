// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RobustListAside; touch_robust_list() needs pages that left (preload.robust_locks_of_a_thread_that_ended).
#include "os/robust_list.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <cerrno>
#include <thread>

#include "base/units.hpp"

namespace farheap::os {
namespace {

class RobustLock {
 public:
  RobustLock() {
    pthread_mutexattr_t robust;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(lock_, &robust);
  }
  ~RobustLock() { munmap(lock_, base::kPageBytes); }
  RobustLock(const RobustLock&) = delete;
  RobustLock& operator=(const RobustLock&) = delete;
  [[nodiscard]] int take() { return pthread_mutex_lock(lock_); }
  [[nodiscard]] int try_to_take() { return pthread_mutex_trylock(lock_); }
  [[nodiscard]] int give_back() { return pthread_mutex_unlock(lock_); }
  void allow(int what) { ASSERT_EQ(mprotect(lock_, base::kPageBytes, what), 0); }

 private:
  pthread_mutex_t* lock_ = static_cast<pthread_mutex_t*>(
      mmap(nullptr, base::kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
};

// LMDB's lock, taken by a thread of the program inside the pager, wrote to a lock of the program's that had left: the
// thread waited for itself.
TEST(RobustListAside, TakingAnotherLockDoesNotTouchTheOnesBefore) {
  RobustLock before, inside;
  ASSERT_EQ(before.take(), 0);
  before.allow(PROT_NONE);
  {
    const RobustListAside aside;
    EXPECT_EQ(inside.take(), 0);
    EXPECT_EQ(inside.give_back(), 0);
  }
  before.allow(PROT_READ | PROT_WRITE);
  EXPECT_EQ(before.give_back(), 0);
}

TEST(RobustListAside, AfterwardsTheKernelKnowsTheLocksAgain) {
  RobustLock first, second;
  std::thread([&] {
    ASSERT_EQ(first.take(), 0);
    ASSERT_EQ(second.take(), 0);
    const RobustListAside outer;
    const RobustListAside inner;
  }).join();
  EXPECT_EQ(first.try_to_take(), EOWNERDEAD);
  EXPECT_EQ(second.try_to_take(), EOWNERDEAD);
}

}  // namespace
}  // namespace farheap::os
