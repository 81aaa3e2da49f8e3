// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Preloaded before an allocator that asks for memory by mmap() (jemalloc): what is mapped lies in one shared file in
// memory, and every RECENCY_WINDOW_US a thread writes to RECENCY_TRACE which of its pages were touched since the time
// before, and which of them were written. Taken out of the page tables, a page is put back by the kernel alone when it
// is touched: so "present" is an access bit, of reads and writes. WP_ASYNC is the bit of writes.
//
// It is for programs that do not fork: a child would share the memory. It is slow: every page that is in use faults
// in every window (about 1.4 us).
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "os/uffd_abi.hpp"
#include "recency/use_trace.hpp"

namespace {

namespace abi = farheap::os::abi;
using farheap::bench::kDropped;
using farheap::bench::kMostRuns;
using farheap::bench::kTracedBytes;

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::size_t kLeastBytes = 64 << 10;  // smaller mappings stay the kernel's
constexpr std::uint64_t kFeatureWpShmem = 1u << 12;

std::byte* g_base = nullptr;
std::atomic<std::size_t> g_used{0};
int g_memory = -1, g_trace = -1, g_pagemap = -1, g_userfault = -1;
pid_t g_owner = 0;
std::mutex g_writing;  // guards the two arrays, and the order of frames
abi::PageRegion g_regions[kMostRuns];
std::uint32_t g_frame[1 + 2 * kMostRuns];

[[noreturn]] void give_up(const char* why) {
  (void)!write(2, "use_recorder: ", 14);
  (void)!write(2, why, std::strlen(why));
  (void)!write(2, "\n", 1);
  _exit(99);
}

void write_words(const std::uint32_t* words, std::size_t count) {
  const char* from = reinterpret_cast<const char*>(words);
  for (std::size_t left = count * sizeof *words; left != 0;) {
    const ssize_t done = write(g_trace, from, left);
    if (done <= 0) give_up("cannot write RECENCY_TRACE");
    from += done;
    left -= static_cast<std::size_t>(done);
  }
}

std::uint32_t page_of(std::uint64_t address) {
  return static_cast<std::uint32_t>((address - reinterpret_cast<std::uint64_t>(g_base)) / kPageBytes);
}

// Requires: g_writing.
void write_window() {
  const std::size_t bytes = g_used.load();
  if (bytes == 0) return;
  abi::PagemapScan scan{};
  scan.size = sizeof scan;
  scan.start = reinterpret_cast<std::uint64_t>(g_base);
  scan.end = scan.start + bytes;
  scan.vec = reinterpret_cast<std::uint64_t>(g_regions);
  scan.vec_len = kMostRuns;
  scan.category_mask = abi::kPageIsPresent;
  scan.return_mask = abi::kPageIsPresent | abi::kPageIsWritten;
  const int runs = ioctl(g_pagemap, abi::kPagemapScan, &scan);
  if (runs < 0) give_up("PAGEMAP_SCAN failed: it needs Linux 6.7");
  syscall(SYS_madvise, g_base, bytes, MADV_DONTNEED);
  uffdio_writeprotect protect{};
  protect.range = {scan.start, bytes};
  protect.mode = UFFDIO_WRITEPROTECT_MODE_WP;
  if (ioctl(g_userfault, UFFDIO_WRITEPROTECT, &protect) != 0) give_up("cannot arm the write bits");
  g_frame[0] = static_cast<std::uint32_t>(runs);
  for (int i = 0; i < runs; ++i) {
    const auto& region = g_regions[i];
    const auto count = static_cast<std::uint32_t>((region.end - region.start) / kPageBytes);
    const std::uint32_t written = (region.categories & abi::kPageIsWritten) != 0 ? 1 : 0;
    g_frame[1 + 2 * i] = page_of(region.start);
    g_frame[2 + 2 * i] = count << 1 | written;
  }
  write_words(g_frame, 1 + 2 * static_cast<std::size_t>(runs));
}

void* record(void*) {
  const char* const wanted = getenv("RECENCY_WINDOW_US");
  const long us = wanted != nullptr ? std::strtol(wanted, nullptr, 10) : 5000;
  const timespec window{us / 1'000'000, us % 1'000'000 * 1000};
  for (;;) {
    nanosleep(&window, nullptr);
    const std::lock_guard lock(g_writing);
    if (getpid() == g_owner) write_window();
  }
}

void open_all() {
  static std::atomic<bool> done{false};
  if (done.exchange(true)) return;
  g_owner = getpid();
  g_memory = memfd_create("traced", MFD_CLOEXEC);
  if (g_memory < 0 || ftruncate(g_memory, kTracedBytes) != 0) give_up("cannot make a file in memory");
  void* const at = reinterpret_cast<void*>(
      syscall(SYS_mmap, nullptr, kTracedBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, g_memory, 0));
  if (at == MAP_FAILED) give_up("cannot map it");
  g_base = static_cast<std::byte*>(at);
  const char* const path = getenv("RECENCY_TRACE");
  g_trace = open(path != nullptr ? path : "uses.trace", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  g_pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (g_trace < 0 || g_pagemap < 0) give_up("cannot open RECENCY_TRACE or /proc/self/pagemap");
  g_userfault = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = kFeatureWpShmem | abi::kFeatureWpUnpopulated | abi::kFeatureWpAsync;
  uffdio_register range{};
  range.range = {reinterpret_cast<std::uint64_t>(g_base), kTracedBytes};
  range.mode = UFFDIO_REGISTER_MODE_WP;
  if (g_userfault < 0 || ioctl(g_userfault, UFFDIO_API, &api) != 0 ||
      ioctl(g_userfault, UFFDIO_REGISTER, &range) != 0) {
    give_up("no userfaultfd with WP_ASYNC: it needs Linux 6.7, and root or vm.unprivileged_userfaultfd=1");
  }
}

[[gnu::constructor]] void start() {
  open_all();
  unsetenv("LD_PRELOAD");  // not in what it executes
  pthread_t thread{};
  if (pthread_create(&thread, nullptr, record, nullptr) != 0) give_up("cannot start a thread");
  pthread_detach(thread);
}

[[gnu::destructor]] void end() {
  const std::lock_guard lock(g_writing);
  if (getpid() == g_owner) write_window();
}

bool is_traced(const void* at) { return g_base != nullptr && at >= g_base && at < g_base + kTracedBytes; }

void drop(void* at, std::size_t bytes) {
  bytes = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  const std::lock_guard lock(g_writing);
  if (getpid() != g_owner) return;
  write_window();
  const auto offset = static_cast<std::byte*>(at) - g_base;
  (void)fallocate(g_memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, static_cast<off_t>(bytes));
  const std::uint32_t frame[] = {kDropped, page_of(reinterpret_cast<std::uint64_t>(at)),
                                 static_cast<std::uint32_t>(bytes / kPageBytes)};
  write_words(frame, 3);
}

}  // namespace

extern "C" {

// Addresses are handed out once: what is unmapped is dropped, and never used again.
[[gnu::visibility("default")]] void* mmap(void* at, std::size_t bytes, int access, int flags, int file, off_t offset) {
  open_all();
  const bool anonymous = (flags & MAP_ANONYMOUS) != 0 && (flags & MAP_PRIVATE) != 0;
  const bool placed = (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_STACK | MAP_GROWSDOWN)) != 0;
  if (anonymous && !placed && access == (PROT_READ | PROT_WRITE) && bytes >= kLeastBytes && getpid() == g_owner) {
    const std::size_t length = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    const std::size_t from = g_used.fetch_add(length);
    if (from + length > kTracedBytes) give_up("the program maps more than 8 GiB");
    return g_base + from;
  }
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, access, flags, file, offset));
}
[[gnu::visibility("default")]] void* mmap64(void* at, std::size_t bytes, int access, int flags, int file,
                                            off_t offset) {
  return mmap(at, bytes, access, flags, file, offset);
}
[[gnu::visibility("default")]] int munmap(void* at, std::size_t bytes) {
  if (!is_traced(at)) return static_cast<int>(syscall(SYS_munmap, at, bytes));
  drop(at, bytes);
  return 0;
}
[[gnu::visibility("default")]] int madvise(void* at, std::size_t bytes, int advice) {
  if (!is_traced(at)) return static_cast<int>(syscall(SYS_madvise, at, bytes, advice));
  if (advice == MADV_DONTNEED) drop(at, bytes);
  return 0;
}
}
