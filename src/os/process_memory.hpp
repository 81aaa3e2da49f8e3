// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much memory this process uses, as its control group would count it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace farheap::os {

// Anonymous resident memory of this process in bytes: /proc/self/statm, resident less shared. About 2 us.
// Safe in any thread; allocates nothing. 0 if /proc is not mounted. Also where the main thread has ended.
class ProcessMemory {
 public:
  ProcessMemory() = default;
  ~ProcessMemory();
  ProcessMemory(const ProcessMemory&) = delete;
  ProcessMemory& operator=(const ProcessMemory&) = delete;

  [[nodiscard]] std::uint64_t anonymous_bytes();
  // Of any process, and its first touches and copies on write since it was made; zeros if it is gone. About 10 us.
  struct Use {
    std::uint64_t anonymous_bytes = 0;
    std::uint64_t minor_faults = 0;
  };
  [[nodiscard]] static Use use_of(int process);
  // The anonymous memory of any process, where a page that several share counts in part for each (smaps_rollup, Linux
  // 5.4). 0 if that cannot be read. The kernel walks the page tables for it: 0.1 ms for a process of 10 MiB.
  [[nodiscard]] static std::uint64_t anonymous_share_of(int process);
  void reopen();  // in a forked child, whose /proc/self is another

 private:
  int file_ = -1;
};

}  // namespace farheap::os
