// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stacks.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "kernel_memory.hpp"
#include "profile/code_ranges.hpp"

namespace farheap::contexts {
namespace {

constexpr std::size_t kRoomBytes = std::size_t{64} << 10;
// A stack that a program has made lies among other memory, and its end is not known.
constexpr std::uintptr_t kMostForeignBytes = std::uintptr_t{8} << 20;

struct Range {
  std::uintptr_t first = 0, end = 0;
  [[nodiscard]] bool has(std::uintptr_t address) const { return address >= first && address < end; }
};

struct Stacks {
  std::uintptr_t here, home;
  Range now, began;
};

// By a system call: what lies beside a stack may be unmapped meanwhile by another thread.
bool read_words(Range range, std::span<std::uintptr_t> room, LiveWords::Take& to) {
  while (range.first < range.end) {
    const std::size_t bytes = std::min<std::size_t>(range.end - range.first, room.size_bytes());
    const iovec into{room.data(), bytes}, from{reinterpret_cast<void*>(range.first), bytes};
    const long got = syscall(SYS_process_vm_readv, syscall(SYS_getpid), &into, 1, &from, 1, 0);
    if (got <= 0) return false;
    to.take(room.data(), static_cast<std::size_t>(got) / sizeof(std::uintptr_t));
    range.first += static_cast<std::uintptr_t>(got);
    if (static_cast<std::size_t>(got) < bytes) return true;  // the rest has gone
  }
  return true;
}

}  // namespace

// Registers that calls keep are in this frame then, or in one above it.
bool OwnStacks::read(Take& to) {
  __builtin_unwind_init();
  const bool is_read = read_from(__builtin_frame_address(0), to);
  asm volatile("" ::: "memory");  // no jump: the frame is needed until it has been read
  return is_read;
}

__attribute__((noinline)) bool OwnStacks::read_from(const void* /*above*/, Take& to) const {
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) / sizeof(void*) * sizeof(void*);
  void* const room = take_from_kernel(kRoomBytes);
  if (room == nullptr) return false;
  Stacks stacks{.here = here, .home = reinterpret_cast<std::uintptr_t>(home_), .now = {}, .began = {}};
  // One reference: with more a std::function allocates.
  const auto look = [&stacks](std::string_view line) {
    profile::MapsLine one;
    if (!profile::read_maps_line(line, one)) return true;
    const Range range{one.first, one.end};
    if (range.has(stacks.here)) stacks.now = range;
    if (range.has(stacks.home)) stacks.began = range;
    return stacks.now.end == 0 || stacks.began.end == 0;
  };
  profile::read_maps(look, {static_cast<char*>(room), kRoomBytes});
  auto [now, began] = std::pair(stacks.now, stacks.began);
  const bool is_home = now.first == began.first;
  now.first = here;
  // The thread's own words lie at the end of its stack, and what is behind them is somebody else's.
  const auto own = reinterpret_cast<std::uintptr_t>(pthread_self());
  if (is_home && now.has(own)) now.end = own;
  if (!is_home) now.end = std::min(now.end, here + kMostForeignBytes);
  const std::span<std::uintptr_t> words(static_cast<std::uintptr_t*>(room), kRoomBytes / sizeof(std::uintptr_t));
  bool is_read = now.end != 0 && began.end != 0 && read_words(now, words, to);
  if (is_read && !is_home) is_read = read_words(began, words, to);
  give_to_kernel(room, kRoomBytes);
  return is_read;
}

}  // namespace farheap::contexts
