// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/mutex.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace farheap::base {
namespace {

static_assert(sizeof(Mutex) == sizeof(std::mutex) && sizeof(SharedMutex) == sizeof(std::shared_mutex));

bool is_free(Mutex& mutex) {
  bool free = false;
  std::thread([&] {
    if (!mutex.try_lock()) return;
    free = true;
    mutex.unlock();
  }).join();
  return free;
}

TEST(Mutex, AGuardHoldsItAsLongAsItLives) {
  Mutex mutex;
  {
    const LockGuard lock(mutex);
    EXPECT_FALSE(is_free(mutex));
    {
      const Without unlocked(mutex);
      EXPECT_TRUE(is_free(mutex));
    }
    EXPECT_FALSE(is_free(mutex));
  }
  EXPECT_TRUE(is_free(mutex));
}

TEST(Mutex, AUniqueLockGivesBackOnlyWhatItHolds) {
  Mutex mutex;
  {
    UniqueLock lock(mutex, std::defer_lock);
    EXPECT_FALSE(lock.owns_lock());
    EXPECT_TRUE(is_free(mutex));
    EXPECT_TRUE(lock.try_lock());
    EXPECT_TRUE(lock.owns_lock());
    EXPECT_FALSE(is_free(mutex));
    lock.unlock();
    EXPECT_TRUE(is_free(mutex));
  }
  {
    UniqueLock lock(mutex);
    EXPECT_TRUE(lock.owns_lock());
  }
  EXPECT_TRUE(is_free(mutex));
}

TEST(Mutex, ReadersShareIt) {
  SharedMutex mutex;
  const SharedGuard lock(mutex);
  std::thread([&] {
    const SharedGuard another(mutex);
    EXPECT_FALSE(mutex.try_lock());
  }).join();
}

TEST(Mutex, WhatTheForkingThreadHeldIsFreeInTheChild) {
  Mutex mutex;
  SharedMutex shared;
  mutex.lock();
  shared.lock();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    mutex.unlock_in_child();
    shared.unlock_in_child();
    _exit(mutex.try_lock() && shared.try_lock() ? 0 : 1);
  }
  mutex.unlock();
  shared.unlock();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace farheap::base
