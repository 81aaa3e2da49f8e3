// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that has farheap-engines beside it notices nothing of it, and gives it nothing away.
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>

#include "store/beside/process.hpp"
#include "tests/engines/beside_fixture.hpp"

namespace farheap::test {
namespace {

std::atomic<int> g_children_ended{0};
std::atomic<int> g_forks{0};

std::string status_of(pid_t process, const std::string& name) {
  return line_of("/proc/" + std::to_string(process) + "/status", name + ":\t");
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class BesideProcess : public testing::Test {
 protected:
  // A process that has closed its store still has to end.
  BesideProcess() { wait_until_all_ended(FARHEAP_ENGINES_GUEST); }
  pid_t only_process() {
    const auto all = processes_of(FARHEAP_ENGINES_GUEST);
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? -1 : all.front();
  }
  ServedBy served_{FARHEAP_ENGINES_GUEST};
};

TEST_F(BesideProcess, IsNoChildThatTheProgramSees) {
  struct sigaction counting{}, before{};
  counting.sa_handler = [](int) { ++g_children_ended; };
  sigaction(SIGCHLD, &counting, &before);
  pthread_atfork([] { ++g_forks; }, nullptr, nullptr);
  auto store = open_beside("mem", "").value();
  EXPECT_NE(status_of(only_process(), "PPid"), std::to_string(getpid()));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  store.reset();
  wait_until_all_ended(FARHEAP_ENGINES_GUEST);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(g_children_ended, 0);
  EXPECT_EQ(g_forks, 0);
  sigaction(SIGCHLD, &before, nullptr);
}

TEST_F(BesideProcess, HasSignalsOfItsOwn) {
  struct sigaction ignored{}, before{};
  ignored.sa_handler = SIG_IGN;
  sigaction(SIGUSR1, &ignored, &before);
  sigset_t blocked, mask_before;
  sigfillset(&blocked);
  pthread_sigmask(SIG_SETMASK, &blocked, &mask_before);
  auto store = open_beside("mem", "").value();
  sigset_t mask_after;
  pthread_sigmask(SIG_SETMASK, &mask_before, &mask_after);
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(sigismember(&mask_after, SIGUSR2), 1);  // as the program had it
  const pid_t process = only_process();
  EXPECT_EQ(status_of(process, "SigBlk"), "0000000000000000");
  EXPECT_EQ(status_of(process, "SigIgn"), "0000000000000000");
  EXPECT_EQ(getsid(process), process);
}

TEST_F(BesideProcess, HasNoneOfTheProgramsDescriptors) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);  // stays open across exec()
  auto store = open_beside("mem", "").value();
  const std::string folder = "/proc/" + std::to_string(only_process()) + "/fd/";
  const auto pipe_name = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(ends[0]));
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_NE(std::filesystem::read_symlink(entry), pipe_name);
    const int number = std::atoi(entry.path().filename().c_str());
    if (number < 3) {
      EXPECT_EQ(std::filesystem::read_symlink(entry), "/dev/null");
    }
  }
  close(ends[0]), close(ends[1]);
}

TEST_F(BesideProcess, HasNoSecretAndNothingOfFarheapInItsTitleAndEnvironment) {
  setenv("FARHEAP_STORE_PASSWORD_FILE", "/secret/file", 1);
  setenv("FARHEAP_ENCRYPT_KEY", "0123", 1);
  setenv("LD_PRELOAD", "", 1);
  setenv("BIGTABLE_EMULATOR_HOST", "localhost:1", 1);
  auto store = open_beside("mem", "", {}, {{"mem", "user", "somebody"}}).value();
  const std::string folder = "/proc/" + std::to_string(only_process());
  const std::string environment = bytes_of(folder + "/environ");
  EXPECT_EQ(bytes_of(folder + "/cmdline"), std::string("farheap-engines\0", 16));
  EXPECT_EQ(environment.find("FARHEAP_"), std::string::npos);
  EXPECT_EQ(environment.find("LD_PRELOAD"), std::string::npos);
  EXPECT_NE(environment.find("BIGTABLE_EMULATOR_HOST=localhost:1"), std::string::npos);
  for (const char* one :
       {"FARHEAP_STORE_PASSWORD_FILE", "FARHEAP_ENCRYPT_KEY", "LD_PRELOAD", "BIGTABLE_EMULATOR_HOST"}) {
    unsetenv(one);
  }
}

TEST_F(BesideProcess, EndsWhenItsClientIsKilled) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto store = open_beside("mem", "");
    if (store && write(ends[1], "x", 1) == 1) pause();
    _exit(1);
  }
  char byte = 0;
  ASSERT_EQ(read(ends[0], &byte, 1), 1);
  EXPECT_EQ(processes_of(FARHEAP_ENGINES_GUEST).size(), 1u);
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  wait_until_all_ended(FARHEAP_ENGINES_GUEST);
  close(ends[0]), close(ends[1]);
}

TEST_F(BesideProcess, LeavesNoDescriptorBehind) {
  const auto count = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = count();
  {
    auto store = open_beside("mem", "").value();
    auto flying = store->gets_in_flight(4);
    EXPECT_FALSE(open_beside("file", "/nowhere/at/all"));
  }
  EXPECT_EQ(count(), before);
}

TEST(BesideProcessPlace, AWrongNameIsSaid) {
  const ServedBy served("/nowhere/farheap-engines");
  const auto opened = open_beside("mem", "");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kNotFound);
  EXPECT_NE(opened.error().message().find("/nowhere/farheap-engines"), std::string::npos);
}

TEST(BesideProcessPlace, WhatIsNoProgramIsSaid) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/farheap-engines";
  std::ofstream(path) << "no program\n";
  std::filesystem::permissions(path, std::filesystem::perms(0755));
  const ServedBy served(path);
  const auto opened = open_beside("mem", "");
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message().find("Exec format error"), std::string::npos) << opened.error().message();
}

}  // namespace
}  // namespace farheap::test
