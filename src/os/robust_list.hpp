// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The robust locks that a thread holds: when it has ended, the kernel marks them and wakes who waits. It does so where
// the thread is past serving a fault, and stops at the first lock that is out of view: it would stay locked for ever.
//
// Thread-safety: any thread, for itself.
#pragma once

struct robust_list;
struct robust_list_head;

namespace farheap::os {

// Brings the locks that this thread holds into view, to be written to. To be called when it is about to end.
void touch_robust_list();

// While it lives, the thread's list is empty. Who takes a robust lock links it to the one taken before, which is
// written to: a lock of the program's may be out of view, and a thread of the program inside the pager cannot wait for
// the pager. All locks taken meanwhile must have been given back at the end. Should the thread be killed meanwhile,
// those that wait in other processes for locks of its own are not told.
class RobustListAside {
 public:
  RobustListAside();
  ~RobustListAside();
  RobustListAside(const RobustListAside&) = delete;
  RobustListAside& operator=(const RobustListAside&) = delete;

 private:
  robust_list_head* head_;
  robust_list* first_ = nullptr;
};

}  // namespace farheap::os
