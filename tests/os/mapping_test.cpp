// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/mapping.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/units.hpp"

namespace farheap::os {
namespace {

#ifdef __SANITIZE_THREAD__  // it leaves a program the lowest 512 GiB
constexpr std::uintptr_t kPlace = 64 * base::kGiB;
constexpr std::size_t kLarge = 64 * base::kGiB;
#else
constexpr std::uintptr_t kPlace = 0x5f00'0000'0000;
constexpr std::size_t kLarge = base::kTiB;
#endif

// msync() fails with ENOMEM where nothing is mapped.
bool is_mapped(void* at) { return msync(at, 4096, MS_ASYNC) == 0; }

TEST(Mapping, IsAtItsPlaceAndGoesWithItsOwner) {
  {
    auto mapping = Mapping::reserve_at(kPlace, kLarge, Access::kReadWrite);
    ASSERT_TRUE(mapping.has_value()) << mapping.error().message();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mapping->data()), kPlace);
    mapping->data()[kLarge - 1] = std::byte{1};
    Mapping moved = std::move(*mapping);
    EXPECT_EQ(mapping->data(), nullptr);
    EXPECT_EQ(moved.data()[kLarge - 1], std::byte{1});
  }
  EXPECT_FALSE(is_mapped(reinterpret_cast<void*>(kPlace)));
}

TEST(Mapping, AConflictIsToldAndHarmsNobody) {
  auto first = Mapping::reserve_at(kPlace, 16 * 4096, Access::kReadWrite);
  ASSERT_TRUE(first.has_value());
  first->data()[4096] = std::byte{7};
  auto second = Mapping::reserve_at(kPlace + 8 * 4096, 16 * 4096, Access::kReadWrite);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_NE(second.error().message().find("heap_id"), std::string::npos) << second.error().message();
  EXPECT_EQ(first->data()[4096], std::byte{7});
  EXPECT_FALSE(is_mapped(reinterpret_cast<void*>(kPlace + 20 * 4096)));
}

TEST(Mapping, ALimitIsTold) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "SKIPPED, NOT TESTED: ThreadSanitizer itself cannot live within such a limit";
#endif
  const pid_t child = fork();
  if (child == 0) {
    // Beyond what is mapped already, so that words for the error can be had: a sanitizer maps terabytes.
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = pages * base::kPageBytes + base::kGiB;
    const rlimit little{most, most};
    if (setrlimit(RLIMIT_AS, &little) != 0) _exit(1);
    auto mapping = Mapping::reserve(base::kTiB, Access::kReadWrite);
    if (mapping.has_value()) _exit(2);
    _exit(mapping.error().message().find("ulimit -v") != std::string::npos ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ReservedArray, IsZeroAndSharedOnlyWhenAsked) {
  auto own = ReservedArray<int>::make(1'000'000'000);
  auto shared = ReservedArray<int>::make(1'000'000'000, true);
  ASSERT_TRUE(own.has_value() && shared.has_value());
  EXPECT_EQ((*own)[999'999'999], 0);
  EXPECT_EQ((*shared)[999'999'999], 0);
  const pid_t child = fork();
  if (child == 0) {
    (*own)[5] = 1;
    (*shared)[5] = 1;
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ((*own)[5], 0);
  EXPECT_EQ((*shared)[5], 1);
}

}  // namespace
}  // namespace farheap::os
