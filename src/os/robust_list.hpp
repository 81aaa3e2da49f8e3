// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The robust locks that a thread holds: when it has ended, the kernel marks them and wakes who waits. It does so where
// the thread is past serving a fault, and stops at the first lock that is out of view: it would stay locked for ever.
//
// Thread-safety: any thread, for itself.
#pragma once

namespace farheap::os {

// Brings the locks that this thread holds into view, to be written to. To be called when it is about to end.
void touch_robust_list();

}  // namespace farheap::os
