// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds and starts `farheap-engines` for a program that is to notice nothing of it: no child that its wait() sees, no
// SIGCHLD, none of its handlers of fork() called, none of its descriptors, signals or terminal given away.
//
// Thread-safety: any thread.
#pragma once

#include <farheap/result.hpp>
#include <string>

namespace farheap::store::beside {

// The program: where FARHEAP_ENGINES says, else where Farheap is installed, else beside this program as the tool's
// installation and the build tree have it. kNotFound in words.
[[nodiscard]] Result<std::string> find_engines();

// Our end of a socket (SOCK_SEQPACKET) whose other end is the new process's descriptor 3. It ends when all copies of
// our end are closed, whatever closes them. Its environment is this one's, without LD_PRELOAD and what is FARHEAP_'s.
[[nodiscard]] Result<int> start_engines(const std::string& program);

}  // namespace farheap::store::beside
