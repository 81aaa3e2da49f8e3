// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime's threads: handlers that take faults from the kernel, the evictor, the reader. They block all
// signals, run inside the runtime (base/inside_runtime.hpp) and live until the process ends.
//
// Handlers take turns: one waits for events; when it has one it hands the waiting on and serves the fault itself,
// because waking another thread to serve it would cost more than the fault. A second handler is woken only when
// a second thread of the program faults.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "os/userfault.hpp"
#include "pager/kernel_view.hpp"
#include "pager/pager.hpp"

namespace farheap::pager {

struct FaultLoopOptions {
  unsigned most_handlers = 4;
  // After a fault, unless another handler is at work: another fault usually follows, and waking a blocked thread is
  // dear; but when several threads fault at once, a processor that spins is missed elsewhere.
  unsigned spin_us = 20;
  std::uint32_t buffer_pages = 512;
};

class FaultLoop {
 public:
  FaultLoop(Pager& pager, KernelView& view, base::RunPage& run_page, FaultLoopOptions options);
  // kUnavailable if a thread cannot be made.
  [[nodiscard]] Status start();
  // In a forked child, where the threads are not.
  [[nodiscard]] Status start_in_child();

 private:
  [[nodiscard]] Status start_thread(void* (*body)(void*));
  static void* handler(void* loop);
  static void* evictor(void* loop);
  static void* reader(void* loop);
  void handle();
  [[nodiscard]] bool next_event(os::FaultEvent& event);
  void note_thread(std::uint32_t thread);

  Pager& pager_;
  KernelView& view_;
  base::RunPage& run_page_;
  const FaultLoopOptions options_;
  std::mutex turn_;
  std::uint32_t first_thread_ = 0;  // guarded by turn_: the first that faulted
  std::uint32_t last_thread_ = 0;
  std::atomic<unsigned> handlers_ = 0;  // that are awake
  std::atomic<unsigned> handlers_made_ = 0;
  std::atomic<unsigned> serving_ = 0;  // handlers that have a fault in hand
};

}  // namespace farheap::pager
