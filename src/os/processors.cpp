// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/processors.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace farheap::os {

int processor_of_thread(std::uint32_t thread) {
  char path[64];
  *fmt::format_to_n(path, sizeof path - 1, "/proc/self/task/{}/stat", thread).out = '\0';
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  char text[1024];
  const ssize_t size = read(file, text, sizeof text - 1);
  syscall(SYS_close, file);
  if (size <= 0) return -1;
  text[size] = '\0';
  constexpr int kProcessorField = 39;        // proc(5)
  const char* at = std::strrchr(text, ')');  // the end of field 2, which may hold anything
  for (int field = 2; at != nullptr && field < kProcessorField; ++field) at = std::strchr(at + 1, ' ');
  return at == nullptr ? -1 : std::atoi(at + 1);
}

void keep_to_processor(int processor) {
  static const cpu_set_t all = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(getpid(), sizeof set, &set);  // the main thread's: what the process was started with
    return set;
  }();
  cpu_set_t wanted = all;
  if (processor >= 0) {
    CPU_ZERO(&wanted);
    CPU_SET(static_cast<unsigned>(processor), &wanted);
  }
  sched_setaffinity(0, sizeof wanted, &wanted);
}

}  // namespace farheap::os
