// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/page_map.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <vector>

#include "os/mapping.hpp"
#include "os/own_descriptors.hpp"
#include "os/process_memory.hpp"

namespace farheap::os {
namespace {

constexpr std::size_t kPages = 1500;  // more than are read at once

class PageMap : public testing::Test {
 protected:
  void SetUp() override {
    auto range = Mapping::reserve(kPages * 4096, Access::kReadWrite);
    ASSERT_TRUE(range.has_value());
    range_ = std::move(*range);
    madvise(range_.data(), range_.size(), MADV_NOHUGEPAGE);
    for (std::size_t i = 0; i < kPages; i += 3) range_.data()[i * 4096] = std::byte{1};
  }
  [[nodiscard]] bool is_right() const {
    std::vector<PageEntry> entries(kPages);
    if (!read_page_map(range_.data(), entries)) return false;
    for (std::size_t i = 0; i < kPages; ++i) {
      if (entries[i].present != (i % 3 == 0)) return false;
    }
    return true;
  }
  Mapping range_;
};

TEST_F(PageMap, TellsWhichPagesAreThere) { EXPECT_TRUE(is_right()); }

TEST_F(PageMap, TellsWhichPagesAreShared) {
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = fork();
  if (child == 0) {
    char one;
    close(go[1]);
    _exit(read(go[0], &one, 1) == 0 ? 0 : 1);
  }
  range_.data()[0] = std::byte{2};  // a copy of our own
  PageEntry entries[4];
  ASSERT_TRUE(read_page_map(range_.data(), entries));
  EXPECT_TRUE(entries[0].exclusive);
  EXPECT_TRUE(entries[3].present && !entries[3].exclusive);
  close(go[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  close(go[0]);
}

// A descriptor of the parent's page map would show the parent.
TEST_F(PageMap, AForkedChildSeesItsOwn) {
  ASSERT_TRUE(is_right());
  const pid_t child = fork();
  if (child == 0) {
    madvise(range_.data(), 3 * 4096, MADV_DONTNEED);
    PageEntry entries[4];
    if (!read_page_map(range_.data(), entries)) _exit(1);
    _exit(!entries[0].present && entries[3].present ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(is_right());
}

// Pages were taken for absent, and dropped, when a program had used up its descriptors.
TEST_F(PageMap, WithoutDescriptorsItWorksOrSaysSo) {
  ASSERT_TRUE(is_right());
  const pid_t child = fork();
  if (child == 0) {
    while (open("/dev/null", O_RDONLY) >= 0) {
    }
    // The parent's descriptor gives its place to the child's.
    _exit(is_right() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ProcessMemory, FollowsWhatIsTouchedAndDropped) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "SKIPPED, NOT TESTED: ThreadSanitizer keeps four bytes, which count, for each that was touched";
#endif
  ProcessMemory memory;
  auto range = Mapping::reserve(64 << 20, Access::kReadWrite);
  ASSERT_TRUE(range.has_value());
  const std::uint64_t before = memory.anonymous_bytes();
  EXPECT_GT(before, 0u);
  for (std::size_t i = 0; i < range->size(); i += 4096) range->data()[i] = std::byte{1};
  const std::uint64_t touched = memory.anonymous_bytes();
  EXPECT_GE(touched, before + (62u << 20));
  const pid_t child = fork();
  if (child == 0) {
    memory.reopen();
    madvise(range->data(), range->size(), MADV_DONTNEED);
    _exit(memory.anonymous_bytes() < before + (8u << 20) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "a child must see itself";
  EXPECT_GE(memory.anonymous_bytes(), before + (62u << 20));
  const auto seen_from_outside = os::ProcessMemory::use_of(getpid());
  EXPECT_GE(seen_from_outside.anonymous_bytes, before + (62u << 20));
  EXPECT_GE(seen_from_outside.minor_faults, 1U);
  EXPECT_EQ(os::ProcessMemory::use_of(INT_MAX).anonymous_bytes, 0U) << "there is no such process";
  madvise(range->data(), range->size(), MADV_DONTNEED);
  EXPECT_LT(memory.anonymous_bytes(), before + (8u << 20));
}

TEST_F(PageMap, WhatIsInMemoryIsFoundWithoutIt) {
  std::vector<PageEntry> entries(kPages);
  ASSERT_TRUE(find_in_memory(range_.data(), entries));
  for (std::size_t i = 0; i < kPages; ++i) EXPECT_EQ(entries[i].present, i % 3 == 0) << i;
}

}  // namespace
}  // namespace farheap::os
