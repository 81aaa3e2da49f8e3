// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A fault is never kept waiting for long: others let go of the pager's mutexes when one wants in, and stay away until
// it has been there. (A mutex alone is not fair: whoever lets go is the first to take it again.)
//
// Thread-safety: any thread. In a forked child, where the threads that waited are not: construct it anew.
#pragma once

#include <atomic>

#include "base/mutex.hpp"

namespace farheap::pager {

class FaultDoor {
 public:
  FaultDoor() = default;
  FaultDoor(const FaultDoor&) = delete;
  FaultDoor& operator=(const FaultDoor&) = delete;

  // For a fault. Not asleep as long as one block's way out takes.
  void lock(base::Mutex& mutex) FARHEAP_ACQUIRE(mutex);
  // For a thread of the program, never asleep on the lock: whoever is woken with it may find his stack gone. Who shares
  // the lock lets go of it when somebody is at the door, and does not share it anew for a while if somebody wants it
  // alone.
  void lock_unwoken(base::SharedMutex& mutex) FARHEAP_ACQUIRE(mutex);
  // An evictor's.
  void share(base::SharedMutex& mutex) FARHEAP_ACQUIRE_SHARED(mutex);
  [[nodiscard]] bool try_share(base::SharedMutex& mutex) FARHEAP_TRY_ACQUIRE_SHARED(true, mutex);

  [[nodiscard]] unsigned waiting() const { return waiting_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool is_wanted() const { return waiting() != 0; }
  // Until nobody is at the door, but not for long: a fault's thread may have been put aside. The caller has let go of
  // what they want.
  void wait() const;
  // Lets go of the mutex meanwhile.
  void let_through(base::Mutex& mutex) const FARHEAP_REQUIRES(mutex);

 private:
  std::atomic<unsigned> waiting_ = 0;
  std::atomic<unsigned> want_alone_ = 0;  // of those
};

// An evictor's: with the lock it is gone for a moment only, and where it slept on the mutex, whoever lets go of that
// would have to wake it, a system call and an interrupt to another processor.
void lock_awake(base::Mutex& mutex) FARHEAP_ACQUIRE(mutex);

// A thread of the program holds this while it is in the pager, beside the mutex: nothing leaves the view meanwhile. Its
// stack may lie in the pages. It touches that before it has the mutex, because with the mutex nobody could bring it.
class FARHEAP_SCOPED_CAPABILITY Still {
 public:
  Still(FaultDoor& door, base::SharedMutex& leaving_view) FARHEAP_ACQUIRE(leaving_view);
  ~Still() FARHEAP_RELEASE() { lock_.unlock(); }
  Still(const Still&) = delete;
  Still& operator=(const Still&) = delete;

 private:
  base::SharedMutex& lock_;
};

}  // namespace farheap::pager
