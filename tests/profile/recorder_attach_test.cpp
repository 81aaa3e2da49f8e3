// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A recorder that is attached to a program which runs already, and may be again.
#include "profile/recorder.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "recorder_world.hpp"

namespace farheap::profile::testing {
namespace {

class AttachedRecorderTest : public RecorderTest {
 protected:
  // A folder of its own for each time.
  std::string folder(int number) const {
    const std::string path = folder_ + "/" + std::to_string(number);
    std::filesystem::create_directory(path);
    return path;
  }
  Profile read_of(int number, pid_t process = getpid()) const {
    return read(folder(number) + "/" + std::to_string(process) + ".recording");
  }
};

TEST_F(AttachedRecorderTest, HasNothingOfBeforeAndNothingOfTheTimeBetween) {
  const auto recorder = make();
  ASSERT_TRUE(recorder->attach(folder(1)));
  ask_pages(*recorder, 0, 10, 4);
  recorder->ended(10, recorder->begun(0, 0), std::chrono::nanoseconds(3), 1);
  recorder->end();
  ask_pages(*recorder, 0, 20, 4);
  recorder->ended(20, recorder->begun(0, 0), std::chrono::nanoseconds(3), 1);
  ASSERT_TRUE(recorder->attach(folder(2)));
  ask_pages(*recorder, 1, 30, 2);
  recorder->unmapped(at(10 * kPage), 20 * kPage);
  const Profile first = read_of(1), second = read_of(2);
  for (const Profile* profile : {&first, &second}) {
    expect_sound(*profile);
    EXPECT_TRUE(profile->processes[0].is_attached);
  }
  EXPECT_EQ(first.processes[0].live_bytes, 4 * kPage);
  EXPECT_EQ(first.processes[0].faults, 1u);
  EXPECT_EQ(second.processes[0].live_bytes, 2 * kPage);
  EXPECT_EQ(second.processes[0].faults, 0u);
  EXPECT_EQ(second.processes[0].sites.size(), 1u);
  EXPECT_EQ(totals_of(second, second.processes[0], 1).live, 2 * kPage);
}

TEST_F(AttachedRecorderTest, OneThatRunsFromTheStartIsNoAttachedOne) {
  const auto recorder = make();
  ask_pages(*recorder, 0, 10, 4);
  EXPECT_FALSE(read().processes[0].is_attached);
}

TEST_F(AttachedRecorderTest, WithoutAFolderItSaysWhyAndMayBeAttachedLater) {
  const auto recorder = make();
  const Status failed = recorder->attach(folder_ + "/no such folder");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kNotFound);
  recorder->end();
  ASSERT_TRUE(recorder->attach(folder(1)));
  ask_pages(*recorder, 0, 10, 4);
  EXPECT_EQ(read_of(1).processes[0].live_bytes, 4 * kPage);
}

// Each time a file stayed mapped, and so on the disk. (Of addresses, tool.attach tells.)
TEST_F(AttachedRecorderTest, AgainAndAgainItHasOneFileAndThenNone) {
  const auto recorder = make();
  const auto files = [] {
    std::ifstream maps("/proc/self/maps");
    std::string line;
    int count = 0;
    while (std::getline(maps, line)) count += line.find(".recording") != std::string::npos ? 1 : 0;
    return count;
  };
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(recorder->attach(folder(i)));
    ask_pages(*recorder, 0, 10, 4);
    EXPECT_EQ(files(), 1);
    recorder->end();
    EXPECT_EQ(files(), 0);
  }
}

TEST_F(AttachedRecorderTest, WhoIsInTheMiddleOfItGoesOn) {
  const auto recorder = make();
  std::atomic<bool> is_over = false;
  std::vector<std::thread> threads;
  for (unsigned caller = 0; caller < kCallers; ++caller) {
    threads.emplace_back([&, caller] {
      const std::uint64_t page = 1000 * (caller + 1);
      while (!is_over) {
        ask_pages(*recorder, caller, page, 8);
        recorder->ended(page, recorder->begun(0, 0), std::chrono::nanoseconds(3), 1);
        recorder->unmapped(at(page * kPage), 8 * kPage);
      }
    });
  }
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(recorder->attach(folder(i)));
    std::this_thread::yield();
    recorder->end();
    expect_sound(read_of(i));
  }
  is_over = true;
  for (auto& thread : threads) thread.join();
}

TEST_F(AttachedRecorderTest, AForkedChildIsAttachedByItself) {
  const auto recorder = make();
  ASSERT_TRUE(recorder->attach(folder(1)));
  ask_pages(*recorder, 0, 10, 4);
  const pid_t child = fork();
  if (child == 0) {
    recorder->begin_in_child();
    ask_pages(*recorder, 0, 20, 4);  // nobody records it
    if (!recorder->attach(folder(2))) _exit(1);
    ask_pages(*recorder, 1, 30, 2);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ask_pages(*recorder, 0, 40, 1);
  EXPECT_EQ(read_of(1).processes[0].live_bytes, 5 * kPage);
  EXPECT_EQ(read_of(2, child).processes[0].live_bytes, 2 * kPage);
}

}  // namespace
}  // namespace farheap::profile::testing
