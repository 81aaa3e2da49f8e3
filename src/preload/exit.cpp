// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ways a program ends by itself: exit() and the return from main run the destructor, quick_exit() its own list,
// _exit() and _Exit() nothing but the system call. Each is the last chance to see how much memory the run holds. Nobody
// is asked before a signal ends a program, or before exec().
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/raise_to.hpp"
#include "preload/program_calls.hpp"
#include "preload/runtime.hpp"

#define FARHEAP_EXPORT extern "C" __attribute__((visibility("default")))

namespace farheap::preload {

// Also in the child of a vfork(), which has the memory of its parent and is not a process of the run.
static void note_use() {
  Runtime* const made = g_runtime.load(std::memory_order_acquire);
  if (made == nullptr) return;
  made->segment->note_use();
  if (!made->regions) return;
  // What was seen before, without a lock: a handler of a signal may end the process in the middle of a change of a
  // heap.
  const auto [bytes, spare_bytes] = made->regions->most_use();
  base::raise_to(made->run_page->counters.region_bytes, std::uint64_t{bytes});
  base::raise_to(made->run_page->counters.region_spare_bytes, std::uint64_t{spare_bytes});
}

__attribute__((destructor)) static void at_exit() { note_use(); }

void watch_quick_exit() { at_quick_exit(note_use); }

void end_process(int status) {
  note_use();
  for (;;) syscall(SYS_exit_group, status);
}

}  // namespace farheap::preload

FARHEAP_EXPORT void _exit(int status) { farheap::preload::end_process(status); }
FARHEAP_EXPORT void _Exit(int status) noexcept { farheap::preload::end_process(status); }
