// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/read_buffers.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/units.hpp"

namespace farheap::pager {

using base::kPageBytes;

// All in one piece: in a forked child the parent's go, whose threads are not there.
Status ReadBuffers::make(unsigned buffers, std::uint32_t pages) {
  auto made = os::Mapping::reserve(std::size_t{buffers} * pages * kPageBytes, os::Access::kReadWrite);
  if (!made) return fail(std::move(made.error()));
  memory_ = std::move(*made);
  pages_ = pages;
  uses_.assign(buffers, {});
  return {};
}

std::byte* ReadBuffers::at(unsigned buffer) const { return memory_.data() + std::size_t{buffer} * pages_ * kPageBytes; }

void ReadBuffers::used(unsigned buffer, std::uint32_t pages) {
  if (pages == 0) return;  // a touch in probation, of which a sweep has one a window
  Use& use = uses_[buffer];
  use.in_memory = std::max(use.in_memory, pages);
  use.small = pages > kKeptPages ? 0 : use.small + 1;
  if (use.small >= kSmallInARow) shrink(buffer);
}

// The system call itself: the program's madvise() may be Farheap's own.
void ReadBuffers::shrink(unsigned buffer) {
  Use& use = uses_[buffer];
  if (use.in_memory <= kKeptPages) return;
  const std::size_t kept = std::size_t{kKeptPages} * kPageBytes;
  syscall(SYS_madvise, at(buffer) + kept, use.in_memory * kPageBytes - kept, MADV_DONTNEED);
  use.in_memory = kKeptPages;
}

}  // namespace farheap::pager
