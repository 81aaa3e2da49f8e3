// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What this kernel has and allows, found out by trying it, less what the option `disable` masks. Debian 12's own
// kernel (6.1) has no move, no asynchronous write protection and no pagemap scan; containers often forbid io_uring;
// unprivileged users are often refused faults from kernel mode.
//
// Thread-safety: any thread. Each call asks the kernel anew and leaves no descriptor behind.
#pragma once

#include <cstdint>
#include <farheap/result.hpp>
#include <optional>
#include <string>

#include "base/options.hpp"

namespace farheap::os {

// How a userfaultfd can be had. Only the first two also serve faults that system calls make.
enum class UserfaultAccess : std::uint8_t {
  kSystemCall,    // privileged, or vm.unprivileged_userfaultfd = 1
  kDevice,        // /dev/userfaultfd may be opened
  kUserModeOnly,  // faults from user mode only: read(2) into a page that left fails with EFAULT
  kNone,
};

struct KernelFeatures {
  UserfaultAccess userfault = UserfaultAccess::kNone;
  int userfault_errno = 0;           // why not, when kNone or kUserModeOnly
  std::uint64_t userfault_bits = 0;  // as UFFDIO_API answers, masked; abi::kFeature...

  bool kernel_faults = false;   // faults of system calls are served
  bool write_protect = false;   // synchronous, for anonymous memory
  bool wp_unpopulated = false;  // pages that are not there yet can be protected too
  bool wp_async = false;
  bool pagemap_scan = false;
  bool move = false;
  bool poison = false;
  bool io_uring = false;
  bool huge_pages = false;  // transparent huge pages are not switched off
};

[[nodiscard]] KernelFeatures detect_kernel_features(base::FeatureSet disabled = {});

// A userfaultfd before UFFDIO_API, O_CLOEXEC and O_NONBLOCK. With `kernel_faults` only one that serves faults of
// system calls too; the error then names the grant that is missing.
[[nodiscard]] Result<int> open_userfault_descriptor(bool kernel_faults);
// While this process may: so that it gets userfaultfds, and its forked children, when it has given up its rights.
void keep_userfault_device();

enum class OvercommitMode : std::uint8_t { kHeuristic = 0, kAlways = 1, kNever = 2 };
enum class HugePageMode : std::uint8_t { kNever, kMadvise, kAlways };

// What the machine and this process's limits allow beside the kernel's features.
struct MachineLimits {
  OvercommitMode overcommit = OvercommitMode::kHeuristic;
  HugePageMode huge_pages = HugePageMode::kNever;
  std::optional<std::uint64_t> address_space_bytes;       // RLIMIT_AS; absent: no limit
  std::optional<std::uint64_t> address_space_hard_bytes;  // up to which the limit may be raised by anyone
  std::uint64_t open_files = 0;                           // RLIMIT_NOFILE
  std::uint64_t memory_bytes = 0;                         // physical
  std::string kernel_release;                             // "6.1.0-37-amd64"
};
[[nodiscard]] MachineLimits detect_machine_limits();

// "always [madvise] never"
[[nodiscard]] HugePageMode parse_huge_page_mode(const std::string& text);

}  // namespace farheap::os
