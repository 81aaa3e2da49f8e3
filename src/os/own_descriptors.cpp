// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/own_descriptors.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <new>

#include "base/system_call.hpp"
#include "os/fork_mark.hpp"

namespace farheap::os {

namespace {

constexpr int kFirst = 700;
constexpr int kMost = 4096;
std::atomic<bool> g_own[kMost];
std::atomic<bool> g_alone[kMost];
std::atomic<unsigned> g_generation{0};
thread_local int t_for_us_alone = 0;
std::atomic<int> g_end{0};
std::atomic<int> g_first{kMost};

ForkMark& mark() {
  // Never destroyed: a child may be forked while the program ends.
  alignas(ForkMark) static std::byte room[sizeof(ForkMark)];
  static ForkMark* const only = new (room) ForkMark;
  return *only;
}

}  // namespace

int keep_descriptor(int file) {
  int high = fcntl(file, F_DUPFD_CLOEXEC, kFirst);
  if (high < 0 || high >= kMost) {
    if (high >= 0) base::close_now(high);
    high = file;
  } else {
    base::close_now(file);
  }
  adopt_descriptor(high);
  if (t_for_us_alone != 0) keep_from_children(high);
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
  if (file < 0 || file >= kMost) return;
  g_own[file].store(false);
  g_alone[file].store(false);
}

void keep_from_children(int file) {
  (void)fork_generation();
  if (file >= 0 && file < kMost) g_alone[file].store(true);
}

bool is_kept_from_children(int file) { return file >= 0 && file < kMost && g_alone[file].load(); }

ForUsAlone::ForUsAlone() { ++t_for_us_alone; }
ForUsAlone::~ForUsAlone() { --t_for_us_alone; }

void leave_parents_descriptors() { (void)fork_generation(); }

unsigned fork_generation() {
  if (!mark().set_if_gone()) return g_generation.load(std::memory_order_relaxed);
  int nothing = -1;
  for (int file = 0; file < kMost; ++file) {
    if (!g_alone[file].exchange(false)) continue;
    base::close_now(file);  // first: there may be no other number left
    if (nothing < 0) nothing = static_cast<int>(syscall(SYS_memfd_create, "farheap-nothing", MFD_CLOEXEC));
    // As above: Farheap's own dup3() spares the numbers that are its own.
    if (nothing >= 0 && nothing != file) syscall(SYS_dup3, nothing, file, O_CLOEXEC);
  }
  // One that took the number of the first is its place holder, and stays.
  if (nothing >= 0 && !is_own_descriptor(nothing)) base::close_now(nothing);
  return g_generation.fetch_add(1, std::memory_order_relaxed) + 1;
}

void release_descriptor(int file) {
  if (file < 0) return;
  disown_descriptor(file);
  base::close_now(file);
}

bool is_own_descriptor(int file) { return file >= 0 && file < kMost && g_own[file].load(std::memory_order_relaxed); }

DescriptorRange own_descriptor_range() {
  const int first = g_first.load(), end = g_end.load();
  return first < end ? DescriptorRange{first, end} : DescriptorRange{0, 0};
}

}  // namespace farheap::os
