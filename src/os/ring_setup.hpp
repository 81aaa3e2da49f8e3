// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What all rings of the runtime have in common. Only where FARHEAP_HAVE_LIBURING is set.
#pragma once

#include <liburing.h>

#include <atomic>

#include "os/own_descriptors.hpp"

namespace farheap::os {

// Rings that this process has set up and not closed. The one thing that orders a ring's end in one thread before
// another ring's beginning, perhaps at the same address, in another: liburing's own system calls are seen by no
// sanitizer.
inline std::atomic<int> g_open_rings{0};

// Its answers do not interrupt their thread: who looks for them finds them (no interrupt to another processor). Its
// descriptor is one of the runtime's. Returns 0, or an errno value.
[[nodiscard]] inline int open_ring(unsigned depth, io_uring& ring) {
  constexpr unsigned kUndisturbed = IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG;  // since Linux 5.19
  int failed = io_uring_queue_init(depth, &ring, kUndisturbed);
  if (failed == -EINVAL) failed = io_uring_queue_init(depth, &ring, 0);
  if (failed != 0) return -failed;
  g_open_rings.fetch_add(1, std::memory_order_acquire);
  ring.ring_fd = ring.enter_ring_fd = keep_descriptor(ring.ring_fd);
  // Nor its queues: the kernel does in this process what stands there.
  keep_from_children(ring.ring_fd);
  (void)io_uring_ring_dontfork(&ring);
  return 0;
}

// `born`: fork_generation() when it was opened. Of a parent's ring a child has the number of a descriptor and nothing
// else: where its queues were, there may be something of the program's now.
inline void close_ring(io_uring& ring, unsigned born) {
  g_open_rings.fetch_sub(1, std::memory_order_release);
  if (born != fork_generation()) return release_descriptor(ring.ring_fd);
  disown_descriptor(ring.ring_fd);
  io_uring_queue_exit(&ring);
}

}  // namespace farheap::os
