// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/own_descriptors.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace farheap::os {

namespace {

constexpr int kFirst = 700;
constexpr int kMost = 4096;
std::atomic<bool> g_own[kMost];
std::atomic<int> g_end{0};
std::atomic<int> g_first{kMost};

// The system call: inside a program that runs on Farheap, close() is Farheap's own.
void close_now(int file) { syscall(SYS_close, file); }

}  // namespace

int keep_descriptor(int file) {
  int high = fcntl(file, F_DUPFD_CLOEXEC, kFirst);
  if (high < 0 || high >= kMost) {
    if (high >= 0) close_now(high);
    high = file;
  } else {
    close_now(file);
  }
  adopt_descriptor(high);
  return high;
}

void adopt_descriptor(int file) {
  if (file < 0 || file >= kMost) return;
  g_own[file].store(true);
  int end = g_end.load();
  while (file + 1 > end && !g_end.compare_exchange_weak(end, file + 1)) {
  }
  int first = g_first.load();
  while (file < first && !g_first.compare_exchange_weak(first, file)) {
  }
}

void disown_descriptor(int file) {
  if (file >= 0 && file < kMost) g_own[file].store(false);
}

void release_descriptor(int file) {
  if (file < 0) return;
  disown_descriptor(file);
  close_now(file);
}

bool is_own_descriptor(int file) { return file >= 0 && file < kMost && g_own[file].load(std::memory_order_relaxed); }

DescriptorRange own_descriptor_range() {
  const int first = g_first.load(), end = g_end.load();
  return first < end ? DescriptorRange{first, end} : DescriptorRange{0, 0};
}

}  // namespace farheap::os
