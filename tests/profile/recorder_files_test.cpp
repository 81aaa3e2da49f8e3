// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a recording lies, and how much it holds.
#include "profile/recorder.hpp"

#include <cerrno>

#include "recorder_world.hpp"

namespace farheap::profile::testing {
namespace {

TEST_F(RecorderTest, WithoutAFolderNothingFailsAndItIsSaidOnce) {
  const auto recorder = make_in(folder_ + "/no such folder");
  ::testing::internal::CaptureStderr();
  for (unsigned i = 0; i < 10; ++i) {
    ask_pages(*recorder, i % kCallers, 10 * i, 3);
    recorder->ended(10, recorder->begun(0, 0), std::chrono::nanoseconds(3), 1);
    recorder->freed(at(10 * i * kPage));
    recorder->unmapped(at(0), kPage);
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("is not in the profile: "), std::string::npos) << said;
  EXPECT_NE(said.find("No such file or directory"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_EQ(recordings(), 0u);
}

TEST_F(RecorderTest, KeepsErrno) {
  const auto good = make(), bad = make_in(folder_ + "/no such folder");
  ::testing::internal::CaptureStderr();
  errno = 77;
  ask_pages(*bad, 0, 10, 3);
  EXPECT_EQ(errno, 77);
  ask_pages(*good, 0, 10, 3);
  EXPECT_EQ(errno, 77);
  (void)::testing::internal::GetCapturedStderr();
}

TEST_F(RecorderTest, TheSecondOfAProcessNumberHasAnotherFile) {
  std::vector<std::unique_ptr<Recorder>> recorders;
  for (unsigned i = 0; i < 3; ++i) {
    recorders.push_back(make());
    ask_pages(*recorders.back(), 0, 10, i + 1);
  }
  EXPECT_EQ(recordings(), 3u);
  EXPECT_EQ(read(path_of(getpid())).processes[0].live_bytes, kPage);
  EXPECT_EQ(read(path_of(getpid(), ".1")).processes[0].live_bytes, 2 * kPage);
  EXPECT_EQ(read(path_of(getpid(), ".2")).processes[0].live_bytes, 3 * kPage);
}

TEST_F(RecorderTest, WhatFindsNoRoomIsCounted) {
  const auto recorder = make(kSmall);
  for (unsigned i = 0; i < 100; ++i) ask_pages(*recorder, i % kCallers, 10 * i, 4);
  const Profile full = read();
  expect_sound(full);
  const ProcessProfile& one = full.processes[0];
  EXPECT_EQ(one.frames.size(), 4u);
  EXPECT_EQ(one.sites.size(), 1u) << "the first stack fills the tree";
  EXPECT_EQ(one.sites[0].live_bytes, 25 * 4 * kPage);
  EXPECT_EQ(one.live_bytes, 25 * 4 * kPage);
  EXPECT_EQ(one.without_room, 75u + 1) << "those of other callers; and the lines of modules";
  EXPECT_EQ(full.files.size(), 1u);
  EXPECT_EQ(one.frames[1].returns_to, (CodePlace{0, g_returns_to[0]}));
  for (unsigned i = 0; i < 100; ++i) recorder->freed(at(10 * i * kPage));
  EXPECT_EQ(read().processes[0].live_bytes, 0u);
}

}  // namespace
}  // namespace farheap::profile::testing
