// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/fault_door.hpp"

#include <sched.h>

#include <chrono>

#include "base/clock.hpp"
#include "base/units.hpp"

namespace farheap::pager {

namespace {

constexpr int kLooks = 400;  // some tens of microseconds: as long as one block's way out takes
// Longer than one block's way out takes. Not for ever: the thread may wait for a page of its own stack, for which
// somebody has to make room.
constexpr std::chrono::milliseconds kMostPatience{20};
constexpr int kMostYields = 1000;  // a fault's thread that does not come for so long was put aside

// Not always awake either: a thread of a real-time priority would keep those from the processor who have it.
void wait_a_little(int looks) {
  looks < kMostYields ? (void)sched_yield() : base::sleep_for(std::chrono::microseconds(50));
}

}  // namespace

void lock_awake(base::Mutex& mutex) {
  for (int i = 0; i < kLooks; ++i) {
    if (mutex.try_lock()) return;
    __builtin_ia32_pause();
  }
  mutex.lock();
}

bool FaultDoor::try_share(base::SharedMutex& mutex) {
  if (want_alone_.load() != 0) return false;
  return mutex.try_lock_shared();
}

void FaultDoor::share(base::SharedMutex& mutex) {
  for (int i = 0; i < kLooks; ++i) {
    if (try_share(mutex)) return;
    __builtin_ia32_pause();
  }
  const auto until = base::Clock::now() + kMostPatience;
  for (int looks = 0;; ++looks) {
    mutex.lock_shared();
    if (want_alone_.load() == 0 || base::Clock::now() >= until) return;
    mutex.unlock_shared();
    wait_a_little(looks);
  }
}

void FaultDoor::lock(base::Mutex& mutex) {
  waiting_.fetch_add(1, std::memory_order_relaxed);
  lock_awake(mutex);
  waiting_.fetch_sub(1, std::memory_order_relaxed);
}

void FaultDoor::lock_unwoken(base::SharedMutex& mutex) {
  if (mutex.try_lock()) return;
  waiting_.fetch_add(1, std::memory_order_relaxed);
  want_alone_.fetch_add(1);
  for (int looks = 0; !mutex.try_lock(); ++looks) wait_a_little(looks);
  want_alone_.fetch_sub(1);
  waiting_.fetch_sub(1, std::memory_order_relaxed);
}

void FaultDoor::wait() const {
  for (int i = 0; i < kMostYields && is_wanted(); ++i) sched_yield();
}

void FaultDoor::let_through(base::Mutex& mutex) const {
  mutex.unlock();
  wait();
  mutex.lock();
}

Still::Still(FaultDoor& door, base::SharedMutex& leaving_view) : lock_(leaving_view) {
  constexpr std::size_t kStackInUse = base::kPageBytes;  // by what is called with the mutex
  door.lock_unwoken(lock_);
  [[maybe_unused]] volatile char stack[kStackInUse];
  stack[0] = 0;  // what lies between is on the same two pages
}

}  // namespace farheap::pager
