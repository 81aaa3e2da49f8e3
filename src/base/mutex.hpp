// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// std::mutex, std::shared_mutex and their guards, with what clang's analysis must know of them. They are the same in
// size and speed. The guards take every lock of ours (store::ForkLock, heap::BinLock), too.
//
// Thread-safety: locks. A guard is one thread's. In a forked child, where another thread of the parent may have held
// it: construct the lock anew.
#pragma once

#include <mutex>
#include <new>
#include <shared_mutex>

#include "base/thread_safety.hpp"

namespace farheap::base {

class FARHEAP_CAPABILITY("mutex") Mutex {
 public:
  void lock() FARHEAP_ACQUIRE() { mutex_.lock(); }
  [[nodiscard]] bool try_lock() FARHEAP_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() FARHEAP_RELEASE() { mutex_.unlock(); }
  // In a forked child, what the thread that forked had locked: that has another number here, and may not unlock it.
  void unlock_in_child() FARHEAP_RELEASE() { new (&mutex_) std::mutex; }
  // For the analysis alone: it is as if it were held, for the reason that stands beside the call.
  void assume_held() const FARHEAP_ASSERT_CAPABILITY(this) {}

 private:
  std::mutex mutex_;
};

class FARHEAP_CAPABILITY("shared mutex") SharedMutex {
 public:
  void lock() FARHEAP_ACQUIRE() { mutex_.lock(); }
  [[nodiscard]] bool try_lock() FARHEAP_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() FARHEAP_RELEASE() { mutex_.unlock(); }
  void lock_shared() FARHEAP_ACQUIRE_SHARED() { mutex_.lock_shared(); }
  [[nodiscard]] bool try_lock_shared() FARHEAP_TRY_ACQUIRE_SHARED(true) { return mutex_.try_lock_shared(); }
  void unlock_shared() FARHEAP_RELEASE_SHARED() { mutex_.unlock_shared(); }
  void unlock_in_child() FARHEAP_RELEASE() { new (&mutex_) std::shared_mutex; }  // as Mutex's
  void assume_held() const FARHEAP_ASSERT_CAPABILITY(this) {}
  void assume_shared() const FARHEAP_ASSERT_SHARED_CAPABILITY(this) {}

 private:
  std::shared_mutex mutex_;
};

// Holds a lock as long as it lives.
template <class Lock>
class FARHEAP_SCOPED_CAPABILITY LockGuard {
 public:
  explicit LockGuard(Lock& lock) FARHEAP_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
  LockGuard(Lock& lock, std::adopt_lock_t) FARHEAP_REQUIRES(lock) : lock_(lock) {}
  ~LockGuard() FARHEAP_RELEASE() { lock_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Lock& lock_;
};

// Holds it together with others that read.
template <class Lock>
class FARHEAP_SCOPED_CAPABILITY SharedGuard {
 public:
  explicit SharedGuard(Lock& lock) FARHEAP_ACQUIRE_SHARED(lock) : lock_(lock) { lock_.lock_shared(); }
  ~SharedGuard() FARHEAP_RELEASE() { lock_.unlock_shared(); }
  SharedGuard(const SharedGuard&) = delete;
  SharedGuard& operator=(const SharedGuard&) = delete;

 private:
  Lock& lock_;
};

// The same, of a lock that the caller has taken, and may let go of it before.
template <class Lock>
class FARHEAP_SCOPED_CAPABILITY SharedLock {
 public:
  SharedLock(Lock& lock, std::adopt_lock_t) FARHEAP_REQUIRES_SHARED(lock) : lock_(lock) {}
  ~SharedLock() FARHEAP_RELEASE() {
    if (owns_) lock_.unlock_shared();
  }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

  void unlock() FARHEAP_RELEASE() {
    owns_ = false;
    lock_.unlock_shared();
  }

 private:
  Lock& lock_;
  bool owns_ = true;
};

// Holds it, and may let go of it in between.
template <class Lock>
class FARHEAP_SCOPED_CAPABILITY UniqueLock {
 public:
  explicit UniqueLock(Lock& lock) FARHEAP_ACQUIRE(lock) : lock_(lock), owns_(true) { lock_.lock(); }
  UniqueLock(Lock& lock, std::defer_lock_t) FARHEAP_EXCLUDES(lock) : lock_(lock) {}
  UniqueLock(Lock& lock, std::adopt_lock_t) FARHEAP_REQUIRES(lock) : lock_(lock), owns_(true) {}
  ~UniqueLock() FARHEAP_RELEASE() {
    if (owns_) lock_.unlock();
  }
  UniqueLock(const UniqueLock&) = delete;
  UniqueLock& operator=(const UniqueLock&) = delete;

  void lock() FARHEAP_ACQUIRE() {
    lock_.lock();
    owns_ = true;
  }
  [[nodiscard]] bool try_lock() FARHEAP_TRY_ACQUIRE(true) { return owns_ = lock_.try_lock(); }
  void unlock() FARHEAP_RELEASE() {
    owns_ = false;
    lock_.unlock();
  }
  [[nodiscard]] bool owns_lock() const { return owns_; }

 private:
  Lock& lock_;
  bool owns_ = false;
};

// Without a lock that the caller holds, as long as it lives.
template <class Lock>
class FARHEAP_SCOPED_CAPABILITY Without {
 public:
  explicit Without(Lock& lock) FARHEAP_RELEASE(lock) : lock_(lock) { lock_.unlock(); }
  ~Without() FARHEAP_RELEASE() { lock_.lock(); }  // in clang's words: what the constructor did ends
  Without(const Without&) = delete;
  Without& operator=(const Without&) = delete;

 private:
  Lock& lock_;
};

}  // namespace farheap::base
