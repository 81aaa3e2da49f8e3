// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a thread of this process waits in the kernel: for a page, or in a system call (Linux, proc_pid_syscall(5)).
//
// Thread-safety: any thread. Allocates nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace farheap::os {

struct WaitingPlace {
  std::uintptr_t instruction = 0;
  std::uintptr_t stack = 0;  // the stack pointer
};

// `thread`: the kernel's number. Nothing where it does not wait, or the kernel does not tell.
[[nodiscard]] std::optional<WaitingPlace> waiting_place(std::uint32_t thread);
// Reads the text of /proc/PID/task/TID/syscall.
[[nodiscard]] std::optional<WaitingPlace> read_waiting_place(std::string_view text);

}  // namespace farheap::os
