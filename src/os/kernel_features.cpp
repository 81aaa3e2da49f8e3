// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/kernel_features.hpp"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "base/units.hpp"
#include "os/own_descriptors.hpp"
#include "os/small_file.hpp"
#include "os/uffd_abi.hpp"

namespace farheap::os {
namespace {

constexpr int kDescriptorFlags = O_CLOEXEC | O_NONBLOCK;

int userfault_by_system_call(int more_flags) {
  return static_cast<int>(syscall(SYS_userfaultfd, kDescriptorFlags | more_flags));
}

std::atomic<int> g_device{-1};

int userfault_by_device() {
  const int kept = g_device.load();
  const int made = kept < 0 ? -1 : ioctl(kept, abi::kDeviceNew, kDescriptorFlags);
  if (made >= 0) return made;
  const int device = open(abi::kDevicePath, O_RDWR | O_CLOEXEC);
  if (device < 0) return -1;
  const int descriptor = ioctl(device, abi::kDeviceNew, kDescriptorFlags);
  const int saved = errno;
  close(device);
  errno = saved;
  return descriptor;
}

struct Opened {
  int descriptor = -1;
  UserfaultAccess access = UserfaultAccess::kNone;
  int refusal = 0;  // the errno of the system call, when that was refused
};

Opened open_userfault(bool with_kernel_faults, bool without_them) {
  Opened opened;
  if (with_kernel_faults) {
    opened.descriptor = userfault_by_system_call(0);
    if (opened.descriptor >= 0) return opened.access = UserfaultAccess::kSystemCall, opened;
    opened.refusal = errno;
    opened.descriptor = userfault_by_device();
    if (opened.descriptor >= 0) return opened.access = UserfaultAccess::kDevice, opened;
  }
  if (without_them) {
    opened.descriptor = userfault_by_system_call(abi::kUserModeOnly);
    if (opened.descriptor >= 0) return opened.access = UserfaultAccess::kUserModeOnly, opened;
    if (opened.refusal == 0) opened.refusal = errno;
  }
  return opened;
}

std::uint64_t userfault_bits(int descriptor) {
  uffdio_api api{};
  api.api = UFFD_API;
  return ioctl(descriptor, UFFDIO_API, &api) == 0 ? api.features : 0;
}

// Scans the page this very frame is on.
bool have_pagemap_scan() {
  const int pagemap = open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);
  if (pagemap < 0) return false;
  abi::PageRegion region{};
  abi::PagemapScan scan{};
  scan.size = sizeof scan;
  scan.start = reinterpret_cast<std::uintptr_t>(&region) / base::kPageBytes * base::kPageBytes;
  scan.end = scan.start + base::kPageBytes;
  scan.vec = reinterpret_cast<std::uintptr_t>(&region);
  scan.vec_len = 1;
  scan.category_mask = abi::kPageIsPresent;
  scan.return_mask = abi::kPageIsPresent;
  const bool works = ioctl(pagemap, abi::kPagemapScan, &scan) >= 0;
  close(pagemap);
  return works;
}

bool have_io_uring() {
  io_uring_params parameters{};
  const auto ring = static_cast<int>(syscall(SYS_io_uring_setup, 1, &parameters));
  if (ring < 0) return false;
  close(ring);
  return true;
}

HugePageMode huge_page_mode() {
  return parse_huge_page_mode(read_small_file("/sys/kernel/mm/transparent_hugepage/enabled").value_or("never"));
}

}  // namespace

HugePageMode parse_huge_page_mode(const std::string& text) {
  if (text.find("[always]") != std::string::npos) return HugePageMode::kAlways;
  if (text.find("[madvise]") != std::string::npos) return HugePageMode::kMadvise;
  return HugePageMode::kNever;
}

KernelFeatures detect_kernel_features(base::FeatureSet disabled) {
  using base::Feature;
  KernelFeatures found;
  const Opened opened = open_userfault(!disabled.has(Feature::kKernelFaults), true);
  found.userfault = opened.access;
  found.userfault_errno = opened.refusal;
  if (opened.descriptor >= 0) {
    found.userfault_bits = userfault_bits(opened.descriptor);
    close(opened.descriptor);
  }
  if (disabled.has(Feature::kMove)) found.userfault_bits &= ~abi::kFeatureMove;
  if (disabled.has(Feature::kWpAsync)) found.userfault_bits &= ~abi::kFeatureWpAsync;
  const auto has = [&](std::uint64_t bit) { return (found.userfault_bits & bit) != 0; };
  found.kernel_faults = opened.access == UserfaultAccess::kSystemCall || opened.access == UserfaultAccess::kDevice;
  found.write_protect = has(abi::kFeatureWp);
  found.wp_unpopulated = has(abi::kFeatureWpUnpopulated);
  found.wp_async = has(abi::kFeatureWpAsync);
  found.move = has(abi::kFeatureMove);
  found.poison = has(abi::kFeaturePoison);
  found.pagemap_scan = !disabled.has(Feature::kPagemapScan) && have_pagemap_scan();
  found.io_uring = !disabled.has(Feature::kIoUring) && have_io_uring();
  found.huge_pages = !disabled.has(Feature::kHugePages) && huge_page_mode() != HugePageMode::kNever;
  return found;
}

Result<int> open_userfault_descriptor(bool kernel_faults) {
  const Opened opened = open_userfault(kernel_faults, !kernel_faults);
  if (opened.descriptor >= 0) return opened.descriptor;
  if (opened.refusal == ENOSYS) {
    return fail(ErrorCode::kUnavailable, "cannot have a userfaultfd", "userfaultfd(2)", "this kernel has none",
                "use a kernel built with CONFIG_USERFAULTFD");
  }
  if (opened.refusal == EMFILE || opened.refusal == ENFILE) {
    return fail(errno_error(opened.refusal, "cannot have a userfaultfd", "userfaultfd(2)",
                            "allow more open files: raise `ulimit -n`"));
  }
  return fail(
      errno_error(opened.refusal, "cannot have a userfaultfd", "userfaultfd(2) and /dev/userfaultfd",
                  "let an administrator run: sysctl vm.unprivileged_userfaultfd=1; `farheap doctor` says more"));
}

void keep_userfault_device() {
  if (g_device.load() >= 0) return;
  const int device = open(abi::kDevicePath, O_RDWR | O_CLOEXEC);
  if (device < 0) return;
  const int kept = keep_descriptor(device);
  if (kept != device) {
    g_device.store(kept);
  } else {
    release_descriptor(kept);  // it would be one of the few that the program may have
  }
}

MachineLimits detect_machine_limits() {
  MachineLimits limits;
  const std::string overcommit = read_small_file("/proc/sys/vm/overcommit_memory").value_or("0");
  if (overcommit[0] == '1') limits.overcommit = OvercommitMode::kAlways;
  if (overcommit[0] == '2') limits.overcommit = OvercommitMode::kNever;
  limits.huge_pages = huge_page_mode();
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0) {
    if (limit.rlim_cur != RLIM_INFINITY) limits.address_space_bytes = limit.rlim_cur;
    if (limit.rlim_max != RLIM_INFINITY) limits.address_space_hard_bytes = limit.rlim_max;
  }
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) limits.open_files = limit.rlim_cur;
  struct sysinfo machine{};
  if (sysinfo(&machine) == 0) limits.memory_bytes = std::uint64_t{machine.totalram} * machine.mem_unit;
  utsname name{};
  if (uname(&name) == 0) limits.kernel_release = name.release;
  return limits;
}

}  // namespace farheap::os
