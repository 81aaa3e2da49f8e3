// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/process_memory.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "os/own_descriptors.hpp"

namespace farheap::os {

ProcessMemory::~ProcessMemory() { reopen(); }

void ProcessMemory::reopen() {
  release_descriptor(file_);
  file_ = -1;
}

std::uint64_t ProcessMemory::anonymous_bytes() {
  char text[128];
  if (file_ < 0) {
    file_ = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (file_ < 0) return 0;
    file_ = keep_descriptor(file_);
  }
  const ssize_t size = pread(file_, text, sizeof text - 1, 0);
  if (size <= 0) return 0;
  text[size] = '\0';
  char* at = text;
  std::strtoull(at, &at, 10);  // total
  const std::uint64_t resident = std::strtoull(at, &at, 10);
  const std::uint64_t shared = std::strtoull(at, &at, 10);
  return (resident > shared ? resident - shared : 0) * 4096;
}

std::uint64_t ProcessMemory::proportional_anonymous_bytes() {
  const int file = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[4096];
  const ssize_t size = read(file, text, sizeof text - 1);
  syscall(SYS_close, file);
  if (size <= 0) return 0;
  text[size] = '\0';
  constexpr char kField[] = "Pss_Anon:";
  const char* at = std::strstr(text, kField);
  return at == nullptr ? 0 : std::strtoull(at + sizeof kField - 1, nullptr, 10) * 1024;
}

}  // namespace farheap::os
