// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The process between the tool and its program. What the program starts and leaves behind falls to it (it is their
// subreaper), so that it can end the whole tree when the tool is killed; the program's own death signal would reach
// the program alone. When the program ends, the guardian does, and what still runs goes to init as it would without it.
//
// Thread-safety: the functions are for processes with one thread.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <atomic>

namespace farheap::tool {

// None that is passed on: it comes when the tool's first thread has gone, and the tool may still seem to be there.
inline constexpr int kToolDied = SIGPWR;

// In the guardian, `program` being its child and `tool` its parent. Passes the tool's signals of `forwarded` on. Tells
// the tool by SIGCHLD when the program has stopped, and by SIGCONT when it goes on; both processes
// map `stopped`, which says what holds, because of two pending signals none tells which came later. It is set before
// the signal is sent.
// Returns the status of waitpid() when the program has ended. If the tool ends first: ends everything, and the process.
// Requires: all signals are blocked; kToolDied is the death signal (PR_SET_PDEATHSIG).
[[nodiscard]] int guard(pid_t program, pid_t tool, const sigset_t& forwarded, std::atomic<bool>& stopped);

// Kills all children, and theirs as they fall to this process, until there are none that it may kill.
// Requires: this process is a subreaper, SIGCHLD is blocked.
void end_all_children();

}  // namespace farheap::tool
