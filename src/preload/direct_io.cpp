// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Direct reads (O_DIRECT) into paged memory on kernels without UFFDIO_MOVE. There a page that a device is writing to
// cannot be told from any other, and would be copied away under it: what the device then writes would be lost. So the
// device writes to memory of the arena, and the program's pages are written by the processor.
// Where the kernel moves pages it refuses pinned ones by itself, and nothing is done here.
// Not covered: vectored and asynchronous direct reads (docs/limits.md).
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/units.hpp"
#include "preload/runtime.hpp"

#define FARHEAP_EXPORT extern "C" __attribute__((visibility("default")))

using namespace farheap::preload;

namespace {

bool needs_detour(int file, const void* into) {
  if (farheap::base::t_inside_runtime) return false;
  Runtime* made = g_runtime.load(std::memory_order_acquire);
  if (made == nullptr || !made->segment->contains(into) || !made->segment->copies_pages()) return false;
  const int flags = fcntl(file, F_GETFL);
  return flags >= 0 && (flags & O_DIRECT) != 0;
}

// Piece by piece, until one comes up short as the whole would have.
template <class Read>
ssize_t read_by_detour(std::byte* into, size_t bytes, Read read_into) {
  constexpr size_t kPiece = farheap::base::kMiB;
  farheap::heap::Heap& arena = g_runtime.load()->arena;
  void* detour = arena.allocate_aligned(std::min(bytes, kPiece), farheap::base::kPageBytes);
  if (detour == nullptr) {
    errno = ENOMEM;
    return -1;
  }
  size_t done = 0;
  ssize_t size = 0;
  do {
    const size_t piece = std::min(kPiece, bytes - done);
    size = read_into(detour, piece, done);
    if (size <= 0) break;
    memcpy(into + done, detour, static_cast<size_t>(size));
    done += static_cast<size_t>(size);
    if (static_cast<size_t>(size) < piece) break;
  } while (done < bytes);
  const int why = errno;
  arena.free(detour);
  errno = why;
  return done != 0 ? static_cast<ssize_t>(done) : size;
}

}  // namespace

// Cancellation points stay what they are only in the C library's own functions, so those are called.
FARHEAP_EXPORT ssize_t read(int file, void* into, size_t bytes) {
  static const auto next = reinterpret_cast<ssize_t (*)(int, void*, size_t)>(dlsym(RTLD_NEXT, "read"));
  if (!needs_detour(file, into)) return next(file, into, bytes);
  return read_by_detour(static_cast<std::byte*>(into), bytes,
                        [&](void* at, size_t size, size_t) { return next(file, at, size); });
}

FARHEAP_EXPORT ssize_t pread64(int file, void* into, size_t bytes, off64_t offset) {
  static const auto next = reinterpret_cast<ssize_t (*)(int, void*, size_t, off64_t)>(dlsym(RTLD_NEXT, "pread64"));
  if (!needs_detour(file, into)) return next(file, into, bytes, offset);
  return read_by_detour(static_cast<std::byte*>(into), bytes, [&](void* at, size_t size, size_t done) {
    return next(file, at, size, offset + static_cast<off64_t>(done));
  });
}

FARHEAP_EXPORT ssize_t pread(int file, void* into, size_t bytes, off_t offset) {
  return pread64(file, into, bytes, offset);
}
