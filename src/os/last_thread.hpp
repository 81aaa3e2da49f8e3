// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The end of a program whose main thread ends before its others, by pthread_exit() or cancelled: when the last thread
// ends the C library ends the process, with exit(0). It counts its threads for that, the runtime's too, and those never
// end. So when the main thread ends, one more is started here, which sees when no thread of the program is left.
//
// Thread-safety: any thread.
#pragma once

namespace farheap::os {

// In a forked child, before a thread is made: the calling thread is the main one there.
void forked_child_has_one_thread();

// While it lives, the calling thread is the runtime's.
class ThreadOfRuntime {
 public:
  ThreadOfRuntime();
  ~ThreadOfRuntime();
  ThreadOfRuntime(const ThreadOfRuntime&) = delete;
  ThreadOfRuntime& operator=(const ThreadOfRuntime&) = delete;
};

}  // namespace farheap::os
