// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The core of a program that goes on running. The program is stopped; gdb writes what it sees, which is everything but
// the heap (at the first page that is not in view it gives up on a part); the heap's pages that are in memory are then
// copied here, and the rest is filled in as for a dead program (whole_core.hpp).
//
// Thread-safety: none.
#pragma once

#include <sys/types.h>

#include <farheap/result.hpp>
#include <string>
#include <utility>

#include "whole_core.hpp"

namespace farheap::tool {

// As find_notes(), of a running process.
[[nodiscard]] Result<CoreNotes> find_live_notes(pid_t process);

// Stopped by SIGSTOP until the end of scope; one that was stopped before stays so. Stopped at rest: none of its threads
// holds a lock of the store at `place`, which readers might wait for, or waits for a page, which nobody would bring. So
// it may be stopped several times.
class StoppedProcess {
 public:
  [[nodiscard]] static Result<StoppedProcess> stop(pid_t process, const std::string& place);
  StoppedProcess(StoppedProcess&& other) noexcept : process_(std::exchange(other.process_, 0)) {}
  StoppedProcess& operator=(StoppedProcess&&) = delete;
  ~StoppedProcess() { let_go(); }
  void let_go();

 private:
  explicit StoppedProcess(pid_t process) : process_(process) {}
  pid_t process_;  // 0: not ours to wake
};

// Has gdb write the file `out`, readable by its owner alone.
[[nodiscard]] Status dump_by_gdb(pid_t process, const std::string& out);

// What the process has in memory of the heap, of what is staged, and of the entries, into the core. Requires: the
// process is stopped.
[[nodiscard]] Status copy_from_memory(pid_t process, const CoreNotes& notes, CoreFile& core);

}  // namespace farheap::tool
