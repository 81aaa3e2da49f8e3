// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What /proc says of a process. Of one that is gone: 0, or nothing.
//
// Thread-safety: any thread, and in a forked child.
#pragma once

#include <sys/types.h>

#include <string>

namespace farheap::tool {

[[nodiscard]] pid_t parent_of(pid_t process);
// 'R', 'S', 'T', ... of a process, or of a thread by its number.
[[nodiscard]] char state_of(pid_t process);
// As `ps` shows it: at most 15 bytes.
[[nodiscard]] std::string name_of(pid_t process);

}  // namespace farheap::tool
