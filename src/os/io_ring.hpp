// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A batch of positioned reads and writes, all in flight at once where the kernel lets us (io_uring), otherwise one
// after the other (preadv/pwritev, neighbours joined). Short transfers are continued. A lone request is a plain
// pread or pwrite, which is faster than a ring, but for a lone small read: there somebody waits for its latency, and
// looking for the answer without going to sleep saves the waking (random 4 KiB reads: 42 us instead of 60).
//
// Rings are kept in a small pool without locks. A ring belongs to the process that made it: after fork() the child
// makes its own.
//
// Thread-safety: any thread; requests of one batch must not overlap in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace farheap::os {

struct IoRequest {
  int file = -1;
  bool write = false;
  std::uint64_t offset = 0;
  std::byte* data = nullptr;  // only read from if `write`
  std::size_t bytes = 0;
  // Set by run_io():
  std::size_t done = 0;  // bytes moved; less than `bytes` after an error, or at the end of the file
  int error = 0;         // errno value, 0 if none
};

enum class IoWay { kPlain, kRing };

// Carries out every request, in no particular order, and waits for all of them. Never allocates on the plain way.
void run_io(std::span<IoRequest> batch, IoWay way);

// Whether who waits for a lone small read looks out for the answer (the beginning) or sleeps until it comes. Sleeping
// pays when others want the processor: several threads that fault at once.
void look_out_for_answers(bool on);

// Carries on with a request from where it is, in the plain way, whose answer is final.
void finish_plainly(IoRequest& io);

// False if this kernel (or a container's filter, or the build) has no io_uring; then kRing means kPlain.
[[nodiscard]] bool has_io_uring();

}  // namespace farheap::os
