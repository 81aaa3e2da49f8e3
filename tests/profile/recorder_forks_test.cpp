// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recordings of forked children.
#include "profile/recorder.hpp"

#include <sys/wait.h>

#include <functional>

#include "recorder_world.hpp"

namespace farheap::profile::testing {
namespace {

// Runs `act` in a child, after `meanwhile` in the parent; answers the child's number.
pid_t in_a_child(const std::function<void()>& meanwhile, const std::function<void()>& act) {
  int go[2];
  EXPECT_EQ(pipe(go), 0);
  const pid_t child = fork();
  if (child == 0) {
    char word = 0;
    if (::read(go[0], &word, 1) != 1) _exit(1);
    act();
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  meanwhile();
  EXPECT_EQ(write(go[1], "", 1), 1);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  close(go[0]), close(go[1]);
  return child;
}

TEST_F(RecorderTest, AForkedChildBeginsWithWhatLives) {
  const auto recorder = make();
  ask_pages(*recorder, 0, 10, 30);
  ask_pages(*recorder, 1, 100, 20);
  const auto before = bytes_of(path_of(getpid()));
  const pid_t child = in_a_child([] {},
                                 [&] {
                                   recorder->begin_in_child();
                                   ask_pages(*recorder, 2, 200, 7);
                                 });
  EXPECT_EQ(bytes_of(path_of(getpid())), before) << "the parent's recording changed";
  const Profile profile = read(path_of(child));
  expect_sound(profile);
  const ProcessProfile& one = profile.processes[0];
  EXPECT_EQ(one.process, child);
  EXPECT_EQ(one.parent, getpid());
  EXPECT_EQ(totals_of(profile, one, 0).live, 30 * kPage);
  EXPECT_EQ(totals_of(profile, one, 0).allocated, 0u);
  EXPECT_EQ(totals_of(profile, one, 1).live, 20 * kPage);
  EXPECT_EQ(one.live_bytes, 57 * kPage) << "the child allocated seven";
  EXPECT_EQ(one.faults, 0u);
}

TEST_F(RecorderTest, WhatAForkedChildFreesIsTakenFromWhatItBeganWith) {
  const auto recorder = make();
  ask_pages(*recorder, 0, 10, 30);
  ask_pages(*recorder, 1, 100, 20);
  const auto before = bytes_of(path_of(getpid()));
  const pid_t child = in_a_child([] {},
                                 [&] {
                                   recorder->begin_in_child();
                                   recorder->freed(at(10 * kPage));
                                   recorder->freed(at(10 * kPage));
                                   recorder->unmapped(at(100 * kPage), 5 * kPage);
                                 });
  EXPECT_EQ(bytes_of(path_of(getpid())), before) << "the parent's recording changed";
  const Profile profile = read(path_of(child));
  expect_sound(profile);
  EXPECT_EQ(totals_of(profile, profile.processes[0], 0).live, 0u);
  EXPECT_EQ(totals_of(profile, profile.processes[0], 1).live, 15 * kPage);
  EXPECT_EQ(profile.processes[0].live_bytes, 15 * kPage);
}

// The parent goes on at once. Its tables are shared memory, which told the child what lived a moment after the fork.
TEST_F(RecorderTest, AForkedChildBeginsWithWhatLivedAtTheFork) {
  const auto recorder = make();
  ask_pages(*recorder, 0, 10, 30);
  ask_pages(*recorder, 1, 100, 20);
  const pid_t child = in_a_child(
      [&] {
        recorder->freed(at(10 * kPage));
        ask_pages(*recorder, 1, 300, 40);
      },
      [&] {
        recorder->begin_in_child();
        recorder->freed(at(10 * kPage));
      });
  const Profile profile = read(path_of(child));
  EXPECT_EQ(totals_of(profile, profile.processes[0], 0).live, 0u);
  EXPECT_EQ(totals_of(profile, profile.processes[0], 1).live, 20 * kPage);
  EXPECT_EQ(profile.processes[0].live_bytes, 20 * kPage);
  expect_sound(profile);
}

TEST_F(RecorderTest, AGrandchildInheritsThroughAChildThatRecordedNothing) {
  const auto recorder = make();
  ask_pages(*recorder, 0, 10, 30);
  const std::string number = folder_ + "/grandchild";
  const pid_t child = in_a_child([] {},
                                 [&] {
                                   recorder->begin_in_child();
                                   const pid_t grandchild = fork();
                                   if (grandchild == 0) {
                                     recorder->begin_in_child();
                                     recorder->unmapped(at(10 * kPage), 10 * kPage);
                                     _exit(0);
                                   }
                                   int status = 0;
                                   EXPECT_EQ(waitpid(grandchild, &status, 0), grandchild);
                                   std::ofstream(number) << grandchild;
                                 });
  pid_t grandchild = 0;
  std::ifstream(number) >> grandchild;
  EXPECT_FALSE(std::filesystem::exists(path_of(child)));
  const Profile profile = read(path_of(grandchild));
  EXPECT_EQ(totals_of(profile, profile.processes[0], 0).live, 20 * kPage);
  EXPECT_EQ(profile.processes[0].parent, child);
}

TEST_F(RecorderTest, AChildOfWhatCouldNotBeRecordedTriesAgain) {
  const std::string later = folder_ + "/later";
  const auto recorder = make_in(later);
  ::testing::internal::CaptureStderr();
  ask_pages(*recorder, 0, 10, 3);
  (void)::testing::internal::GetCapturedStderr();
  std::filesystem::create_directory(later);
  ask_pages(*recorder, 0, 20, 3);
  EXPECT_TRUE(std::filesystem::is_empty(later)) << "it is not tried again";
  const pid_t child = in_a_child([] {},
                                 [&] {
                                   recorder->begin_in_child();
                                   recorder->freed(at(10 * kPage));
                                   ask_pages(*recorder, 1, 30, 4);
                                 });
  const Profile profile = read(later + "/" + std::to_string(child) + ".recording");
  expect_sound(profile);
  EXPECT_EQ(profile.processes[0].live_bytes, 4 * kPage);
}

}  // namespace
}  // namespace farheap::profile::testing
