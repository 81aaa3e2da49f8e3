// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "common/lock_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>

namespace farheap::bench {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kPages = 16;  // fewer than any usual RLIMIT_MEMLOCK

class LockMemory : public testing::Test {
 protected:
  void SetUp() override {
    void* const area = mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(area, MAP_FAILED);
    area_ = std::span(static_cast<std::byte*>(area), kPages * kPage);
  }
  void TearDown() override { munmap(area_.data(), area_.size()); }

  // As the kernel counts it.
  static std::uint64_t locked_now() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
      std::uint64_t kibibytes = 0;
      if (word == "VmLck:" && status >> kibibytes) return kibibytes << 10;
    }
    return ~std::uint64_t{0};
  }

  std::span<std::byte> area_;
};

TEST_F(LockMemory, LocksTheRangesInTheirOrderUpToTheLimit) {
  const auto locked = lock_memory({area_.subspan(8 * kPage, 2 * kPage), area_.subspan(0, 8 * kPage)}, 5 * kPage);
  ASSERT_TRUE(locked.has_value()) << locked.error();
  EXPECT_EQ(*locked, 5 * kPage);
  EXPECT_EQ(locked_now(), 5 * kPage);
}

TEST_F(LockMemory, LocksNoMoreThanThereIs) {
  EXPECT_EQ(lock_memory({area_.first(3 * kPage)}, 1 << 30).value_or(0), 3 * kPage);
  EXPECT_EQ(locked_now(), 3 * kPage);
}

TEST_F(LockMemory, CountsAPageThatTwoNeighboursShareOnce) {
  const auto locked =
      lock_memory({area_.subspan(0, 100), area_.subspan(100, kPage), area_.subspan(kPage + 100, 100)}, kPages * kPage);
  EXPECT_EQ(locked.value_or(0), 2 * kPage);
  EXPECT_EQ(locked_now(), 2 * kPage);
}

TEST_F(LockMemory, LocksNothingWhenAskedForLessThanAPage) {
  EXPECT_EQ(lock_memory({area_}, kPage - 1).value_or(1), 0U);
  EXPECT_EQ(locked_now(), 0U);
}

TEST_F(LockMemory, ARefusalNamesTheLimitAndTheRemedy) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {  // without root's right to lock what it likes
    const rlimit none{0, 0};
    const bool ready = setrlimit(RLIMIT_MEMLOCK, &none) == 0 && (geteuid() != 0 || setuid(65534) == 0);
    const auto locked = lock_memory({area_}, kPage);
    const std::string told = !ready ? "no child" : locked ? "locked" : locked.error();
    _exit(write(ends[1], told.data(), told.size()) == static_cast<ssize_t>(told.size()) ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  close(ends[1]);
  std::string told(1024, '\0');
  const ssize_t length = read(ends[0], told.data(), told.size());
  close(ends[0]);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_GT(length, 0);
  told.resize(static_cast<std::size_t>(length));
  EXPECT_THAT(told, testing::AllOf(testing::HasSubstr("4096 bytes"), testing::HasSubstr("RLIMIT_MEMLOCK is 0 bytes"),
                                   testing::HasSubstr("ulimit -l")));
}

}  // namespace
}  // namespace farheap::bench
