// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether a process is at its end. After a kill the kernel takes a process down piece by piece: its memory goes before
// its files and their locks, which takes the longer the more memory there is.
//
// Thread-safety: any thread.
#pragma once

#include <sys/types.h>

namespace farheap::os {

// True only where it is sure: it is exiting, has ended and is not waited for yet, or has a SIGKILL pending. False for
// one that runs, for one that is not there, and where /proc does not tell.
[[nodiscard]] bool is_dying(pid_t process);

}  // namespace farheap::os
