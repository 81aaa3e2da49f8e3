// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/kernel_features.hpp"

#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.hpp"
#include "os/uffd_abi.hpp"

namespace farheap::os {
namespace {

using base::Feature;
using base::FeatureSet;

FeatureSet only(Feature one) {
  FeatureSet set;
  set.add(one);
  return set;
}

TEST(KernelFeatures, EachMaskTakesExactlyItsFeatureAway) {
  const KernelFeatures all = detect_kernel_features();
  EXPECT_FALSE(detect_kernel_features(only(Feature::kMove)).move);
  EXPECT_EQ(detect_kernel_features(only(Feature::kMove)).wp_async, all.wp_async);
  EXPECT_FALSE(detect_kernel_features(only(Feature::kWpAsync)).wp_async);
  EXPECT_EQ(detect_kernel_features(only(Feature::kWpAsync)).move, all.move);
  EXPECT_FALSE(detect_kernel_features(only(Feature::kPagemapScan)).pagemap_scan);
  EXPECT_FALSE(detect_kernel_features(only(Feature::kIoUring)).io_uring);
  EXPECT_FALSE(detect_kernel_features(only(Feature::kHugePages)).huge_pages);
  const KernelFeatures strict = detect_kernel_features(only(Feature::kKernelFaults));
  EXPECT_FALSE(strict.kernel_faults);
  EXPECT_NE(strict.userfault, UserfaultAccess::kSystemCall);
  EXPECT_NE(strict.userfault, UserfaultAccess::kDevice);
  EXPECT_EQ(strict.io_uring, all.io_uring);
}

TEST(KernelFeatures, BitsAndFlagsSayTheSame) {
  const KernelFeatures found = detect_kernel_features();
  EXPECT_EQ(found.move, (found.userfault_bits & abi::kFeatureMove) != 0);
  EXPECT_EQ(found.poison, (found.userfault_bits & abi::kFeaturePoison) != 0);
  EXPECT_EQ(found.userfault == UserfaultAccess::kNone, found.userfault_bits == 0);
}

TEST(KernelFeatures, LeaveNoDescriptorBehind) {
  const int before = dup(STDERR_FILENO);
  close(before);
  for (int i = 0; i < 3; ++i) (void)detect_kernel_features();
  const int after = dup(STDERR_FILENO);
  close(after);
  EXPECT_EQ(after, before);
}

// The numbers of uffd_abi.hpp, tried on the kernel: a page is moved from one range to another.
TEST(UserfaultAbi, MoveMovesAPage) {
  if (!detect_kernel_features().move) GTEST_SKIP() << "SKIPPED, NOT TESTED: this kernel has no UFFDIO_MOVE";
  const auto descriptor = open_userfault_descriptor(false);
  ASSERT_TRUE(descriptor) << descriptor.error().message();
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = abi::kFeatureMove;
  ASSERT_EQ(ioctl(*descriptor, UFFDIO_API, &api), 0);
  const auto map = [] {
    return static_cast<char*>(
        mmap(nullptr, base::kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  };
  char* const source = map();
  char* const target = map();
  source[17] = 'x';
  uffdio_register range{};
  range.range = {reinterpret_cast<std::uintptr_t>(target), base::kPageBytes};
  range.mode = UFFDIO_REGISTER_MODE_MISSING;
  ASSERT_EQ(ioctl(*descriptor, UFFDIO_REGISTER, &range), 0);
  abi::Move move{};
  move.dst = reinterpret_cast<std::uintptr_t>(target);
  move.src = reinterpret_cast<std::uintptr_t>(source);
  move.len = base::kPageBytes;
  ASSERT_EQ(ioctl(*descriptor, abi::kMove, &move), 0) << "errno " << errno;
  EXPECT_EQ(move.move, static_cast<std::int64_t>(base::kPageBytes));
  EXPECT_EQ(target[17], 'x');
  EXPECT_EQ(source[17], 0);
  close(*descriptor);
  munmap(source, base::kPageBytes);
  munmap(target, base::kPageBytes);
}

// In a process of its own: the test stays what it was.
TEST(OpenUserfault, TheRefusalNamesTheGrant) {
  if (getuid() != 0) GTEST_SKIP() << "SKIPPED, NOT TESTED: needs root, to become somebody without rights";
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(3);
    const auto refused = open_userfault_descriptor(true);
    if (refused) _exit(2);  // this machine grants it to everyone
    const std::string text = refused.error().message();
    _exit(text.find("vm.unprivileged_userfaultfd=1") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "SKIPPED, NOT TESTED: this machine lets every user have a userfaultfd";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(MachineLimits, SeeALimitOfTheAddressSpace) {
  constexpr rlim_t kLimit = base::kTiB * 1024;  // so much that even a sanitizer's shadow fits
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{kLimit, kLimit};
    setrlimit(RLIMIT_AS, &limit);
    _exit(detect_machine_limits().address_space_bytes == kLimit ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(MachineLimits, ReadTheHugePageSetting) {
  EXPECT_EQ(parse_huge_page_mode("[always] madvise never\n"), HugePageMode::kAlways);
  EXPECT_EQ(parse_huge_page_mode("always [madvise] never\n"), HugePageMode::kMadvise);
  EXPECT_EQ(parse_huge_page_mode("always madvise [never]\n"), HugePageMode::kNever);
  EXPECT_EQ(parse_huge_page_mode("\n"), HugePageMode::kNever);
}

}  // namespace
}  // namespace farheap::os
