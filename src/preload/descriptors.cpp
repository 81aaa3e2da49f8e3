// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keeps the runtime's descriptors open when the program closes all that it finds.
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/inside_runtime.hpp"
#include "os/own_descriptors.hpp"
#include "preload/program_calls.hpp"

#define FARHEAP_EXPORT extern "C" __attribute__((visibility("default")))

using farheap::os::is_own_descriptor;

static bool is_protected(int file) { return !farheap::base::t_inside_runtime && is_own_descriptor(file); }

static int not_open() {
  errno = EBADF;
  return -1;
}

namespace farheap::preload {

int program_close(int file) {
  if (is_protected(file)) return not_open();
  return static_cast<int>(syscall(SYS_close, file));
}

// In pieces round the runtime's own.
int program_close_range(unsigned first, unsigned last, int flags) {
  const auto own = farheap::os::own_descriptor_range();
  for (int file = own.first; file < own.end && !farheap::base::t_inside_runtime; ++file) {
    const auto number = static_cast<unsigned>(file);
    if (!is_own_descriptor(file) || number < first || number > last) continue;
    if (number > first && syscall(SYS_close_range, first, number - 1, flags) != 0) return -1;
    if (number == last) return 0;
    first = number + 1;
  }
  return static_cast<int>(syscall(SYS_close_range, first, last, flags));
}

int program_dup2(int from, int to) {
  if (is_protected(from) || is_protected(to)) return not_open();
  return static_cast<int>(syscall(SYS_dup2, from, to));
}

int program_dup3(int from, int to, int flags) {
  if (is_protected(from) || is_protected(to)) return not_open();
  return static_cast<int>(syscall(SYS_dup3, from, to, flags));
}

}  // namespace farheap::preload

using namespace farheap::preload;

FARHEAP_EXPORT int close(int file) { return program_close(file); }
FARHEAP_EXPORT int close_range(unsigned first, unsigned last, int flags) noexcept {
  return program_close_range(first, last, flags);
}
FARHEAP_EXPORT void closefrom(int first) noexcept {
  program_close_range(first < 0 ? 0 : static_cast<unsigned>(first), ~0u, 0);
}

FARHEAP_EXPORT int dup2(int from, int to) noexcept { return program_dup2(from, to); }
FARHEAP_EXPORT int dup3(int from, int to, int flags) noexcept { return program_dup3(from, to, flags); }
