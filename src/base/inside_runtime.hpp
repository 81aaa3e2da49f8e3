// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime never allocates from the heap it serves. While this flag is up, malloc() of the calling thread goes
// to the runtime's own arena. Up for good in the runtime's threads, and for the length of a call where a program's
// thread runs runtime code.
//
// Thread-safety: one flag a thread. In a library loaded at start, so the access is one instruction.
#pragma once

namespace farheap::base {

extern __attribute__((tls_model("initial-exec"))) thread_local bool t_inside_runtime;

class InsideRuntime {
 public:
  InsideRuntime() : before_(t_inside_runtime) { t_inside_runtime = true; }
  ~InsideRuntime() { t_inside_runtime = before_; }
  InsideRuntime(const InsideRuntime&) = delete;
  InsideRuntime& operator=(const InsideRuntime&) = delete;

 private:
  bool before_;
};

}  // namespace farheap::base
