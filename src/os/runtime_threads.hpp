// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime's threads: detached, all signals blocked, inside the runtime (base/inside_runtime.hpp), alive as long as
// the process.
//
// To make a thread, the C library allocates. Where the program brings its own malloc() it asks that one, and paging may
// start in the middle of it: so such a process makes the threads beforehand, and they wait until they are called.
//
// A heap that is opened and closed has threads that end: ordinary ones, but for the signals and the flag.
//
// Thread-safety: one call at a time, but for start_ending_thread().
#pragma once

#include <pthread.h>

#include <farheap/result.hpp>

namespace farheap::os {

using ThreadBody = void* (*)(void*);

// One that waits, or a new one. kUnavailable if none can be made. `body` does not return.
[[nodiscard]] Status start_runtime_thread(ThreadBody body, void* argument);

// One that ends when `body` returns, and is to be joined. The call returns when the thread has begun, so that a fork
// that follows does not fall into its start.
[[nodiscard]] Result<pthread_t> start_ending_thread(ThreadBody body, void* argument);

// From here on `count` threads are made beforehand: now, and in every forked child when it asks for them again.
[[nodiscard]] Status keep_threads_waiting(unsigned count);
// In a forked child, where no threads are: to be called before any is started.
[[nodiscard]] Status renew_threads_in_child();

// Before a fork, while no page leaves: touches what the C library reads to make threads in the child. With a foreign
// malloc() it lies in the heap.
void touch_books_of_threads();

}  // namespace farheap::os
