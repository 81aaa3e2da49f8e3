// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/process_memory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

namespace farheap::os {

ProcessMemory::~ProcessMemory() { reopen(); }

void ProcessMemory::reopen() {
  if (file_ >= 0) close(file_);
  file_ = -1;
}

std::uint64_t ProcessMemory::anonymous_bytes() {
  char text[128];
  ssize_t size = file_ < 0 ? -1 : pread(file_, text, sizeof text - 1, 0);
  if (size <= 0) {  // the first time, or the program closed what it did not open
    file_ = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    size = file_ < 0 ? -1 : pread(file_, text, sizeof text - 1, 0);
    if (size <= 0) return 0;
  }
  text[size] = '\0';
  char* at = text;
  std::strtoull(at, &at, 10);  // total
  const std::uint64_t resident = std::strtoull(at, &at, 10);
  const std::uint64_t shared = std::strtoull(at, &at, 10);
  return (resident > shared ? resident - shared : 0) * 4096;
}

}  // namespace farheap::os
