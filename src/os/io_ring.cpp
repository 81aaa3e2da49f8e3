// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: whatever the ring leaves unfinished (short, interrupted, refused) is finished by the plain way, whose
// answer is final. So the ring needs no error handling of its own.
#include "os/io_ring.hpp"

#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>

#include "base/clock.hpp"
#include "base/log.hpp"
#ifdef FARHEAP_HAVE_LIBURING
#include "os/ring_setup.hpp"
#endif

namespace farheap::os {

void finish_plainly(IoRequest& io) {
  io.error = 0;
  while (io.done < io.bytes) {
    const auto at = static_cast<off_t>(io.offset + io.done);
    const ssize_t moved = io.write ? pwrite(io.file, io.data + io.done, io.bytes - io.done, at)
                                   : pread(io.file, io.data + io.done, io.bytes - io.done, at);
    if (moved > 0) {
      io.done += static_cast<std::size_t>(moved);
    } else if (moved == 0) {
      if (io.write) io.error = EIO;
      return;
    } else if (errno != EINTR && errno != EAGAIN) {
      io.error = errno;
      return;
    }
  }
}

namespace {

// How many requests from the front are neighbours in the file and of one kind.
std::size_t neighbours(std::span<const IoRequest> batch) {
  constexpr std::size_t kMost = 64;
  std::size_t count = 1;
  while (count < batch.size() && count < kMost) {
    const auto& last = batch[count - 1];
    const auto& next = batch[count];
    if (next.file != last.file || next.write != last.write || next.offset != last.offset + last.bytes) break;
    ++count;
  }
  return count;
}

void run_plainly(std::span<IoRequest> batch) {
  while (!batch.empty()) {
    const std::size_t count = neighbours(batch);
    if (count > 1) {
      std::array<iovec, 64> parts;
      for (std::size_t i = 0; i < count; ++i) parts[i] = {batch[i].data, batch[i].bytes};
      const auto at = static_cast<off_t>(batch[0].offset);
      const ssize_t moved = batch[0].write ? pwritev(batch[0].file, parts.data(), static_cast<int>(count), at)
                                           : preadv(batch[0].file, parts.data(), static_cast<int>(count), at);
      std::size_t left = moved > 0 ? static_cast<std::size_t>(moved) : 0;
      for (auto& io : batch.first(count)) {
        io.done = std::min(left, io.bytes);
        left -= io.done;
      }
    }
    for (auto& io : batch.first(count)) finish_plainly(io);
    batch = batch.subspan(count);
  }
}

#ifdef FARHEAP_HAVE_LIBURING

constexpr unsigned kDepth = 64;
constexpr std::size_t kSmallRead = 16384;
constexpr std::chrono::microseconds kLookOut{150};

bool is_small_read(std::span<const IoRequest> batch) {
  return batch.size() == 1 && !batch[0].write && batch[0].bytes <= kSmallRead;
}

std::atomic<bool> g_looks_out{true};

struct Ring {
  io_uring ring{};
  unsigned born = 0;
  bool is_open = false;

  static std::unique_ptr<Ring> create() {
    auto made = std::make_unique<Ring>();
    if (const int failed = open_ring(kDepth, made->ring); failed != 0) {
      base::log(base::LogLevel::kInfo, "io_uring is not to be had (errno {}): plain reads and writes instead", failed);
      return nullptr;
    }
    made->born = fork_generation();
    made->is_open = true;
    return made;
  }
  ~Ring() {
    if (is_open) close_ring(ring, born);
  }

  // Requires: batch.size() <= kDepth.
  void run(std::span<IoRequest> batch) {
    unsigned queued = 0;
    for (auto& io : batch) {
      io_uring_sqe* entry = io_uring_get_sqe(&ring);
      if (entry == nullptr) break;
      const auto bytes = static_cast<unsigned>(std::min(io.bytes, std::size_t{1} << 30));
      if (io.write) {
        io_uring_prep_write(entry, io.file, io.data, bytes, io.offset);
      } else {
        io_uring_prep_read(entry, io.file, io.data, bytes, io.offset);
      }
      io_uring_sqe_set_data(entry, &io);
      ++queued;
    }
    unsigned reaped = is_small_read(batch) ? look_out_for_one() : 0;
    while (reaped < queued) {
      const int answer = io_uring_submit_and_wait(&ring, 1);
      if (answer < 0 && answer != -EINTR && answer != -EAGAIN && answer != -EBUSY) {
        // Buffers may still be in the kernel's hands; going on would let it write into reused memory.
        base::stop(fmt::format("the io_uring of this process broke: {}", strerrordesc_np(-answer)));
      }
      io_uring_cqe* done = nullptr;
      while (io_uring_peek_cqe(&ring, &done) == 0) {
        reap(done);
        ++reaped;
      }
    }
  }

 private:
  void reap(io_uring_cqe* done) {
    auto* io = static_cast<IoRequest*>(io_uring_cqe_get_data(done));
    if (done->res > 0) io->done = static_cast<std::size_t>(done->res);
    io_uring_cqe_seen(&ring, done);
  }

  // Submits and looks for the one answer for a while. Returns the number of answers: 1, or 0 if it takes longer (the
  // caller then waits for it asleep). No sched_yield() here: it lets the processor go to an idle-priority thread for a
  // whole time slice.
  unsigned look_out_for_one() {
    if (!g_looks_out.load(std::memory_order_relaxed) || io_uring_submit(&ring) != 1) return 0;
    const auto until = base::Clock::now() + kLookOut;
    do {
      for (int i = 0; i < 64; ++i) {
        io_uring_cqe* done = nullptr;
        if (io_uring_peek_cqe(&ring, &done) == 0) {
          reap(done);
          return 1;
        }
        __builtin_ia32_pause();
      }
    } while (base::Clock::now() < until);
    return 0;
  }
};

std::array<std::atomic<Ring*>, 16> g_pool{};
std::atomic<bool> g_refused{false};

std::unique_ptr<Ring> take_ring() {
  for (auto& slot : g_pool) {
    if (slot.load(std::memory_order_relaxed) == nullptr) continue;
    std::unique_ptr<Ring> ring(slot.exchange(nullptr, std::memory_order_acquire));
    if (ring && ring->born == fork_generation()) return ring;  // one of the parent's is dropped here
  }
  if (g_refused.load(std::memory_order_relaxed)) return nullptr;
  auto ring = Ring::create();
  if (!ring) g_refused.store(true, std::memory_order_relaxed);
  return ring;
}

void put_back(std::unique_ptr<Ring> ring) {
  for (auto& slot : g_pool) {
    Ring* none = nullptr;
    if (slot.compare_exchange_strong(none, ring.get(), std::memory_order_release)) {
      (void)ring.release();
      return;
    }
  }
}

bool run_in_ring(std::span<IoRequest> batch) {
  auto ring = take_ring();
  if (!ring) return false;
  for (std::size_t at = 0; at < batch.size(); at += kDepth) {
    ring->run(batch.subspan(at, std::min<std::size_t>(kDepth, batch.size() - at)));
  }
  put_back(std::move(ring));
  for (auto& io : batch) {
    if (io.done < io.bytes) finish_plainly(io);
  }
  return true;
}

#else
bool run_in_ring(std::span<IoRequest>) { return false; }
#endif

}  // namespace

void run_io(std::span<IoRequest> batch, IoWay way) {
#ifdef FARHEAP_HAVE_LIBURING
  if (batch.size() == 1 && !is_small_read(batch)) return finish_plainly(batch[0]);
#endif
  if (way == IoWay::kRing && run_in_ring(batch)) return;
  run_plainly(batch);
}

void look_out_for_answers([[maybe_unused]] bool on) {
#ifdef FARHEAP_HAVE_LIBURING
  if (g_looks_out.load(std::memory_order_relaxed) != on) g_looks_out.store(on, std::memory_order_relaxed);
#endif
}

bool has_io_uring() {
#ifdef FARHEAP_HAVE_LIBURING
  auto ring = take_ring();
  if (!ring) return false;
  put_back(std::move(ring));
  return true;
#else
  return false;
#endif
}

}  // namespace farheap::os
