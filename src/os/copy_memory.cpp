// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/copy_memory.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdint>

namespace farheap::os {
namespace {

// Stops at what the program has shut, and is forbidden in some containers.
std::size_t copy_open(std::byte* into, const std::byte* from, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    const iovec to{into + done, bytes - done};
    const iovec of{const_cast<std::byte*>(from) + done, bytes - done};
    const long count = syscall(SYS_process_vm_readv, syscall(SYS_gettid), &to, 1, &of, 1, 0);
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

}  // namespace

bool copy_memory(std::byte* into, const std::byte* from, std::size_t bytes) {
  std::size_t done = copy_open(into, from, bytes);
  if (done == bytes) return true;
  const auto file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/mem", O_RDONLY | O_CLOEXEC, 0));
  if (file < 0) return false;
  while (done < bytes) {
    const auto at = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(from) + done);
    const long count = syscall(SYS_pread64, file, into + done, bytes - done, at);
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  syscall(SYS_close, file);
  return done == bytes;
}

}  // namespace farheap::os
