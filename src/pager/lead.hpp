// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One of several threads has the lead, for as long as it likes; the others wait, as long as they still want it.
//
// Thread-safety: any thread.
#pragma once

#include "base/condition.hpp"
#include "base/mutex.hpp"

namespace farheap::pager {

class FARHEAP_CAPABILITY("lead") Lead {
 public:
  // False: it is not wanted any more. `wanted` is asked again after tell().
  template <class Wanted>
  [[nodiscard]] bool take(Wanted wanted) FARHEAP_TRY_ACQUIRE(true) {
    base::LockGuard lock(mutex_);
    while (wanted()) {
      if (!taken_) return taken_ = true;
      free_.wait(mutex_);
    }
    free_.notify_one();  // who was told in vain passes it on
    return false;
  }
  void give() FARHEAP_RELEASE() {
    base::LockGuard lock(mutex_);
    taken_ = false;
    free_.notify_one();
  }
  // Waiting threads ask again whether they want it.
  void tell() {
    base::LockGuard lock(mutex_);
    free_.notify_all();
  }

 private:
  base::Mutex mutex_;
  base::Condition free_;
  bool taken_ FARHEAP_GUARDED_BY(mutex_) = false;
};

}  // namespace farheap::pager
