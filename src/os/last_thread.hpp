// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The end of a program whose main thread ends before its others, by pthread_exit() or cancelled. The C library ends the
// process with its last thread, by exit(0). It counts the runtime's threads, too, and those never end. So when the main
// thread ends, one more is started here, which sees when no thread of the program is left.
//
// The runtime's threads are told from others by their name (/proc/PID/task/TID/comm): so it does not matter how many
// copies of this code a process has.
//
// Thread-safety: any thread.
#pragma once

namespace farheap::os {

// In a forked child: the calling thread is the main one there. In a program's first process that is known from the
// start.
void this_is_the_main_thread();

// The calling thread is the runtime's from here on.
void name_runtime_thread();

}  // namespace farheap::os
