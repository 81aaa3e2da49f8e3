// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/own_descriptors.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

namespace farheap::os {
namespace {

TEST(OwnDescriptors, AreHighAndMarkedUntilTheyAreReleased) {
  const int low = open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(low, 0);
  EXPECT_FALSE(is_own_descriptor(low));
  const int kept = keep_descriptor(low);
  EXPECT_GT(kept, low);
  EXPECT_EQ(fcntl(low, F_GETFD), -1) << "the old number is closed";
  EXPECT_EQ(fcntl(kept, F_GETFD), FD_CLOEXEC);
  EXPECT_TRUE(is_own_descriptor(kept));
  const DescriptorRange range = own_descriptor_range();
  EXPECT_TRUE(range.first <= kept && kept < range.end);
  release_descriptor(kept);
  EXPECT_FALSE(is_own_descriptor(kept));
  EXPECT_EQ(fcntl(kept, F_GETFD), -1);
}

TEST(OwnDescriptors, DisownedOnesStayOpen) {
  const int kept = keep_descriptor(open("/dev/null", O_RDONLY));
  disown_descriptor(kept);
  EXPECT_FALSE(is_own_descriptor(kept));
  EXPECT_EQ(close(kept), 0);
}

TEST(OwnDescriptors, NumbersThatAreNoneAreNobodys) {
  EXPECT_FALSE(is_own_descriptor(-1));
  EXPECT_FALSE(is_own_descriptor(1 << 30));
  release_descriptor(-1);
  disown_descriptor(-1);
}

// In a child: its limit is its own.
TEST(OwnDescriptors, StayWhereTheyAreWhenThereIsNoHigherNumber) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit few{32, 32};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0) _exit(1);
    const int file = open("/dev/null", O_RDONLY);
    if (keep_descriptor(file) != file) _exit(2);
    if (!is_own_descriptor(file)) _exit(3);
    const DescriptorRange range = own_descriptor_range();
    if (range.first > file || range.end <= file) _exit(4);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace farheap::os
