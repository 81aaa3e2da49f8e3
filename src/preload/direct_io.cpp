// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Direct reads (O_DIRECT) into paged memory on kernels without UFFDIO_MOVE. There a page that a device is writing to
// cannot be told from any other, and would be copied away under it: what the device then writes would be lost. So the
// device writes to memory of the arena, and the program's pages are written by the processor.
// Where the kernel moves pages it refuses pinned ones by itself, and nothing is done here.
// Not covered: asynchronous direct reads (docs/limits.md).
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <span>

#include "base/units.hpp"
#include "preload/next_function.hpp"
#include "preload/runtime.hpp"

#define FARHEAP_EXPORT extern "C" __attribute__((visibility("default")))

using namespace farheap::preload;

namespace {

// Cancellation points stay what they are only in the C library's own functions, so those are called.
constinit NextFunction<ssize_t(int, void*, size_t)> g_read("read");
constinit NextFunction<ssize_t(int, void*, size_t, off64_t)> g_pread("pread64");
constinit NextFunction<ssize_t(int, void*, size_t, size_t)> g_read_chk("__read_chk");
constinit NextFunction<ssize_t(int, void*, size_t, off64_t, size_t)> g_pread_chk("__pread64_chk");
constinit NextFunction<ssize_t(int, const iovec*, int)> g_readv("readv");
constinit NextFunction<ssize_t(int, const iovec*, int, off64_t)> g_preadv("preadv64");
constinit NextFunction<ssize_t(int, const iovec*, int, off64_t, int)> g_preadv2("preadv64v2");

__attribute__((constructor)) void start() {
  look_up(g_read, g_pread, g_read_chk, g_pread_chk, g_readv, g_preadv, g_preadv2);
}

bool needs_detour(int file, std::span<const iovec> pieces) {
  if (farheap::base::t_inside_runtime) return false;
  Runtime* made = g_runtime.load(std::memory_order_acquire);
  if (made == nullptr || !made->segment->copies_pages()) return false;
  const auto is_paged = [&](const iovec& piece) { return made->segment->contains(piece.iov_base); };
  if (std::ranges::none_of(pieces, is_paged)) return false;
  const int flags = fcntl(file, F_GETFL);
  return flags >= 0 && (flags & O_DIRECT) != 0;
}

// Step by step, until one comes up short as the whole would have. `read_into` takes where to, how much, and how much
// came before.
template <class Read>
ssize_t read_by_detour(std::span<const iovec> pieces, Read read_into) {
  constexpr size_t kStep = farheap::base::kMiB;
  farheap::heap::Heap& arena = g_runtime.load()->arena;
  size_t longest = 0;
  for (const iovec& piece : pieces) longest = std::max(longest, piece.iov_len);
  void* detour = arena.allocate_aligned(std::min(longest, kStep), farheap::base::kPageBytes);
  if (detour == nullptr) {
    errno = ENOMEM;
    return -1;
  }
  size_t done = 0;
  ssize_t size = 0;
  const auto comes_whole = [&](const iovec& piece) {
    for (size_t at = 0; at < piece.iov_len;) {
      const size_t step = std::min(kStep, piece.iov_len - at);
      size = read_into(detour, step, done);
      if (size <= 0) return false;
      memcpy(static_cast<std::byte*>(piece.iov_base) + at, detour, static_cast<size_t>(size));
      done += static_cast<size_t>(size);
      at += static_cast<size_t>(size);
      if (static_cast<size_t>(size) < step) return false;
    }
    return true;
  };
  for (const iovec& piece : pieces) {
    if (!comes_whole(piece)) break;
  }
  const int why = errno;
  arena.free(detour);
  errno = why;
  return done != 0 ? static_cast<ssize_t>(done) : size;
}

// `next` reads into pieces, from so many bytes behind the start of the whole.
template <class Next>
ssize_t read_vectored(Next next, int file, const iovec* pieces, int count) {
  const std::span all(pieces, count > 0 && count <= IOV_MAX ? static_cast<size_t>(count) : 0);
  if (!needs_detour(file, all)) return next(pieces, count, 0);
  return read_by_detour(all, [&](void* at, size_t size, size_t done) {
    const iovec one{at, size};
    return next(&one, 1, static_cast<off64_t>(done));
  });
}

}  // namespace

namespace {

ssize_t program_read(int file, void* into, size_t bytes) {
  const iovec whole{into, bytes};
  if (!needs_detour(file, {&whole, 1})) return g_read(file, into, bytes);
  return read_by_detour({&whole, 1}, [&](void* at, size_t size, size_t) { return g_read(file, at, size); });
}

ssize_t program_pread(int file, void* into, size_t bytes, off64_t offset) {
  const iovec whole{into, bytes};
  if (!needs_detour(file, {&whole, 1})) return g_pread(file, into, bytes, offset);
  return read_by_detour({&whole, 1}, [&](void* at, size_t size, size_t done) {
    return g_pread(file, at, size, offset + static_cast<off64_t>(done));
  });
}

// What programs built with _FORTIFY_SOURCE call: `room` bytes are known to be there. The C library's own says what is
// wrong, and ends the program.
ssize_t program_pread_chk(int file, void* into, size_t bytes, off64_t offset, size_t room) {
  return bytes > room ? g_pread_chk(file, into, bytes, offset, room) : program_pread(file, into, bytes, offset);
}

ssize_t program_readv(int file, const iovec* pieces, int count) {
  return read_vectored([&](const iovec* some, int number, off64_t) { return g_readv(file, some, number); }, file,
                       pieces, count);
}

ssize_t program_preadv(int file, const iovec* pieces, int count, off64_t offset) {
  return read_vectored(
      [&](const iovec* some, int number, off64_t done) { return g_preadv(file, some, number, offset + done); }, file,
      pieces, count);
}

ssize_t program_preadv2(int file, const iovec* pieces, int count, off64_t offset, int flags) {
  // From -1 on is where the file stands, which moves by itself.
  const auto from = [&](off64_t done) { return offset == -1 ? offset : offset + done; };
  return read_vectored(
      [&](const iovec* some, int number, off64_t done) { return g_preadv2(file, some, number, from(done), flags); },
      file, pieces, count);
}

}  // namespace

FARHEAP_EXPORT ssize_t read(int file, void* into, size_t bytes) { return program_read(file, into, bytes); }
FARHEAP_EXPORT ssize_t __read_chk(int file, void* into, size_t bytes, size_t room) {  // NOLINT
  return bytes > room ? g_read_chk(file, into, bytes, room) : program_read(file, into, bytes);
}
FARHEAP_EXPORT ssize_t pread(int file, void* into, size_t bytes, off_t offset) {
  return program_pread(file, into, bytes, offset);
}
FARHEAP_EXPORT ssize_t pread64(int file, void* into, size_t bytes, off64_t offset) {
  return program_pread(file, into, bytes, offset);
}
FARHEAP_EXPORT ssize_t __pread_chk(int file, void* into, size_t bytes, off_t offset, size_t room) {  // NOLINT
  return program_pread_chk(file, into, bytes, offset, room);
}
FARHEAP_EXPORT ssize_t __pread64_chk(int file, void* into, size_t bytes, off64_t offset, size_t room) {  // NOLINT
  return program_pread_chk(file, into, bytes, offset, room);
}
FARHEAP_EXPORT ssize_t readv(int file, const iovec* pieces, int count) { return program_readv(file, pieces, count); }
FARHEAP_EXPORT ssize_t preadv(int file, const iovec* pieces, int count, off_t offset) {
  return program_preadv(file, pieces, count, offset);
}
FARHEAP_EXPORT ssize_t preadv64(int file, const iovec* pieces, int count, off64_t offset) {
  return program_preadv(file, pieces, count, offset);
}
FARHEAP_EXPORT ssize_t preadv2(int file, const iovec* pieces, int count, off_t offset, int flags) {
  return program_preadv2(file, pieces, count, offset, flags);
}
FARHEAP_EXPORT ssize_t preadv64v2(int file, const iovec* pieces, int count, off64_t offset, int flags) {
  return program_preadv2(file, pieces, count, offset, flags);
}
