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

// Not even when there is no further number to be had: the place of each stays taken.
TEST(OwnDescriptors, AChildHasNoneOfThoseThatAreKeptFromIt) {
  int pipes[4];
  ASSERT_EQ(pipe(pipes), 0);
  ASSERT_EQ(pipe(pipes + 2), 0);
  for (int& end : pipes) end = keep_descriptor(end);
  const int other = keep_descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
  for (const int end : pipes) keep_from_children(end);
  for (const bool full : {false, true}) {
    const pid_t child = fork();
    if (child == 0) {
      const rlimit few{3, 3};
      if (full && setrlimit(RLIMIT_NOFILE, &few) != 0) _exit(1);
      leave_parents_descriptors();
      for (const int end : {pipes[1], pipes[3]}) (void)!write(end, "-", 1);
      for (const int end : pipes) release_descriptor(end);
      _exit(fcntl(other, F_GETFD) == FD_CLOEXEC ? 0 : 2);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  ASSERT_EQ(fcntl(pipes[0], F_SETFL, O_NONBLOCK), 0);
  char byte = 0;
  EXPECT_EQ(read(pipes[0], &byte, 1), -1) << "the child wrote to its parent's pipe";
  EXPECT_EQ(write(pipes[1], "+", 1), 1);
  EXPECT_EQ(read(pipes[0], &byte, 1), 1) << "and its parent has it still";
  for (const int end : pipes) release_descriptor(end);
  release_descriptor(other);
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
