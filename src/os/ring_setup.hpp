// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What all rings of the runtime have in common. Only where FARHEAP_HAVE_LIBURING is set.
#pragma once

#include <liburing.h>

#include "os/own_descriptors.hpp"

namespace farheap::os {

// Its answers do not interrupt their thread: who looks for them finds them (no interrupt to another processor). Its
// descriptor is one of the runtime's. Returns 0, or an errno value.
[[nodiscard]] inline int open_ring(unsigned depth, io_uring& ring) {
  constexpr unsigned kUndisturbed = IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG;  // since Linux 5.19
  int failed = io_uring_queue_init(depth, &ring, kUndisturbed);
  if (failed == -EINVAL) failed = io_uring_queue_init(depth, &ring, 0);
  if (failed != 0) return -failed;
  ring.ring_fd = ring.enter_ring_fd = keep_descriptor(ring.ring_fd);
  return 0;
}

// In a forked child: closing its copy does not disturb the parent.
inline void close_ring(io_uring& ring) {
  disown_descriptor(ring.ring_fd);
  io_uring_queue_exit(&ring);
}

}  // namespace farheap::os
