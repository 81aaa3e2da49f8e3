// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// io_uring from the program itself, with buffers that have left; and with buffers that it registers, which are pinned.
#include <liburing.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guests.hpp"

using namespace guests;

namespace {

constexpr std::size_t kPiece = Pieces::kPiece;
constexpr unsigned kDepth = 16;

struct Ring {
  io_uring ring{};
  explicit Ring(unsigned flags) { CHECK(io_uring_queue_init(kDepth, &ring, flags) == 0); }
  ~Ring() { io_uring_queue_exit(&ring); }
  // With a kernel thread, requests can be complete before the kernel has said that their entries are free again.
  io_uring_sqe* entry() {
    for (;;) {
      if (io_uring_sqe* free = io_uring_get_sqe(&ring)) return free;
      CHECK(io_uring_sqring_wait(&ring) >= 0);
    }
  }
  // So many requests, each of which must move a whole piece.
  void submit_and_check(unsigned count) {
    CHECK(io_uring_submit_and_wait(&ring, count) == static_cast<int>(count));
    for (unsigned i = 0; i < count; ++i) {
      io_uring_cqe* done = nullptr;
      CHECK(io_uring_wait_cqe(&ring, &done) == 0);
      CHECK(done->res == static_cast<int>(kPiece));
      io_uring_cqe_seen(&ring, done);
    }
  }
};

std::size_t scattered(std::size_t i, std::size_t count) { return i * 41 % count; }

// Every piece of `from` to the file and into `to`, by `put` and `get`.
template <class Put, class Get>
void through_the_ring(Ring& ring, const Pieces& from, Put put, Get get) {
  for (std::size_t first = 0; first + kDepth <= from.count(); first += kDepth) {
    for (unsigned i = 0; i < kDepth; ++i) put(ring.entry(), scattered(first + i, from.count()));
    ring.submit_and_check(kDepth);
  }
  for (std::size_t first = 0; first + kDepth <= from.count(); first += kDepth) {
    for (unsigned i = 0; i < kDepth; ++i) get(ring.entry(), scattered(first + i, from.count()));
    ring.submit_and_check(kDepth);
  }
}

void copy_by_ring(unsigned flags) {
  // Whole rounds of the ring, and a number of pieces that 41 does not divide.
  const std::size_t bytes = data_bytes() / 2 / (kDepth * kPiece) * (kDepth * kPiece);
  const Pieces data(bytes, 30), copy(bytes, 7000);
  const int file = nameless_file();
  std::vector<iovec> vectors(data.count());
  Ring ring(flags);
  through_the_ring(
      ring, data,
      [&](io_uring_sqe* entry, std::size_t i) {
        vectors[i] = {data.piece(i), kPiece};
        if (i % 2 == 0) io_uring_prep_write(entry, file, data.piece(i), kPiece, i * kPiece);
        if (i % 2 == 1) io_uring_prep_writev(entry, file, &vectors[i], 1, i * kPiece);
      },
      [&](io_uring_sqe* entry, std::size_t i) {
        vectors[i] = {copy.piece(i), kPiece};
        if (i % 2 == 0) io_uring_prep_read(entry, file, copy.piece(i), kPiece, i * kPiece);
        if (i % 2 == 1) io_uring_prep_readv(entry, file, &vectors[i], 1, i * kPiece);
      });
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < data.count(); ++i) {
    CHECK(memcmp(copy.piece(i), data.piece(i), kPiece) == 0);
    sum = digest(copy.piece(i), kPiece, sum);
  }
  data.check_all();
  CHECK(close(file) == 0);
  print_digest("copies", sum);
}

}  // namespace

CASE(io_uring_from_user_code) { copy_by_ring(0); }

// The kernel's own thread looks at the program's memory.
CASE(io_uring_with_a_kernel_thread) { copy_by_ring(IORING_SETUP_SQPOLL); }

// A pool of registered buffers, locked, as databases have it; what comes through it is copied to and from the heap.
CASE(io_uring_with_registered_buffers) {
  const Pieces data(data_bytes(), 31);
  const int file = nameless_file();
  iovec pool[kDepth];
  for (auto& buffer : pool) {
    buffer = {aligned_alloc(kPage, kPiece), kPiece};
    CHECK(buffer.iov_base != nullptr && mlock(buffer.iov_base, kPiece) == 0);
  }
  Ring ring(0);
  CHECK(io_uring_register_buffers(&ring.ring, pool, kDepth) == 0);
  std::uint64_t sum = 0;
  for (std::size_t first = 0; first + kDepth <= data.count(); first += kDepth) {
    for (unsigned i = 0; i < kDepth; ++i) {
      memcpy(pool[i].iov_base, data.piece(first + i), kPiece);
      io_uring_prep_write_fixed(ring.entry(), file, pool[i].iov_base, kPiece, (first + i) * kPiece,
                                static_cast<int>(i));
    }
    ring.submit_and_check(kDepth);
  }
  for (std::size_t first = 0; first + kDepth <= data.count(); first += kDepth) {
    for (unsigned i = 0; i < kDepth; ++i) {
      io_uring_prep_read_fixed(ring.entry(), file, pool[i].iov_base, kPiece, (first + i) * kPiece, static_cast<int>(i));
    }
    ring.submit_and_check(kDepth);
    for (unsigned i = 0; i < kDepth; ++i) {
      CHECK(memcmp(pool[i].iov_base, data.piece(first + i), kPiece) == 0);
      sum = digest(pool[i].iov_base, kPiece, sum);
    }
  }
  CHECK(close(file) == 0);
  print_digest("bytes", sum);
}
