// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/waiting_place.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

namespace farheap::os {
namespace {

constexpr std::string_view kInRead =
    "0 0x3 0x7ffd4a3b2c10 0x400 0x0 0x0 0x7f00deadbeef 0x7ffd4a3b2bd8 0x7f2b1c0fd9a1\n";

TEST(WaitingPlace, OfASystemCallIsWhatStandsLast) {
  const auto place = read_waiting_place(kInRead);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->stack, 0x7ffd4a3b2bd8u);
  EXPECT_EQ(place->instruction, 0x7f2b1c0fd9a1u);
}

TEST(WaitingPlace, OfAFaultHasNoSystemCall) {
  const auto place = read_waiting_place("-1 0x7ffd4a3b2bd8 0x55d1c0ffee00\n");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->stack, 0x7ffd4a3b2bd8u);
  EXPECT_EQ(place->instruction, 0x55d1c0ffee00u);
  EXPECT_TRUE(read_waiting_place("-1 0x7ffd4a3b2bd8 0x55d1c0ffee00")) << "the line end may be missing";
}

TEST(WaitingPlace, HoldsTheHighestAddress) {
  const auto place = read_waiting_place("-1 0xffffffffffffffff 0xfffffffffffffffe\n");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->stack, ~std::uintptr_t{0});
  EXPECT_EQ(place->instruction, ~std::uintptr_t{1});
}

TEST(WaitingPlace, OfAThreadThatRunsIsNone) {
  EXPECT_FALSE(read_waiting_place("running\n"));
  EXPECT_FALSE(read_waiting_place("running"));
}

TEST(WaitingPlace, OfSomethingElseIsNone) {
  for (const std::string_view text : {"",
                                      "\n",
                                      " ",
                                      "-1",
                                      "-1 \n",
                                      "0x",
                                      " 0x",
                                      " 0x 0x",
                                      " 0x0x",
                                      "-1 0x1\n",
                                      "-1 0x1 \n",
                                      "-1 0x1 0x\n",
                                      "-1 0x 0x1\n",
                                      "-1 0x1 0xg\n",
                                      "-1 0x1g 0x2\n",
                                      "-1 0x1 0x2 \n",
                                      "-1 0x1 0x2\n\n",
                                      "-1 1 2\n",
                                      "-1 0x1 2\n",
                                      "-1 0x1 0x-2\n",
                                      "-1 0x1 0x10000000000000000\n",
                                      "-1 0x10000000000000000 0x1\n",
                                      "0x1 0x2",
                                      "No such process\n"}) {
    EXPECT_FALSE(read_waiting_place(text)) << "'" << text << "'";
  }
}

// The kernel's text comes whole. What cannot be mistaken for another place is none.
TEST(WaitingPlace, OfATextThatIsCutIsNoneBeforeThereAreTwoAddresses) {
  for (std::size_t length = 0; length < kInRead.size(); ++length) {
    const auto place = read_waiting_place(kInRead.substr(0, length));
    if (length < std::string_view("0 0x3 0x7").size()) {
      EXPECT_FALSE(place) << length;
    }
  }
  const std::string_view in_fault = "-1 0x7ffd4a3b2bd8 0x55d1c0ffee00\n";
  for (std::size_t length = 0; length <= std::string_view("-1 0x7ffd4a3b2bd8 0x").size(); ++length) {
    EXPECT_FALSE(read_waiting_place(in_fault.substr(0, length))) << length;
  }
}

// A real one.

struct Sleeper {
  int pipe[2] = {-1, -1};
  std::atomic<pid_t> thread{0};
  std::uintptr_t low = 0, top = 0;  // its stack
};

std::string system_call_of(pid_t thread) {
  std::ifstream in("/proc/self/task/" + std::to_string(thread) + "/syscall");
  return {std::istreambuf_iterator<char>(in), {}};
}

// The file that has code at the address; empty: none.
std::string code_at(std::uintptr_t address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t first = 0, end = 0;
    char rights[8] = {}, path[512] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %7s %*s %*s %*s %511s", &first, &end, rights, path) < 3) continue;
    if (address >= first && address < end && rights[2] == 'x') return path;
  }
  return {};
}

TEST(WaitingPlace, OfAThreadThatReadsAPipeIsInTheCLibraryAndOnItsStack) {
  if (system_call_of(gettid()).empty()) GTEST_SKIP() << "NOT TESTED: this kernel does not tell where a thread waits";
  Sleeper sleeper;
  ASSERT_EQ(pipe(sleeper.pipe), 0);
  std::thread thread([&sleeper] {
    pthread_attr_t attributes;
    void* low = nullptr;
    std::size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
      pthread_attr_getstack(&attributes, &low, &bytes);
      pthread_attr_destroy(&attributes);
    }
    sleeper.low = reinterpret_cast<std::uintptr_t>(low);
    sleeper.top = sleeper.low + bytes;
    sleeper.thread = gettid();
    char word = 0;
    (void)syscall(SYS_read, sleeper.pipe[0], &word, 1);
  });
  while (sleeper.thread == 0) sched_yield();
  const std::string wanted = std::to_string(SYS_read) + " 0x" + [&] {
    char digits[16];
    std::snprintf(digits, sizeof digits, "%x ", static_cast<unsigned>(sleeper.pipe[0]));
    return std::string(digits);
  }();
  while (!system_call_of(sleeper.thread).starts_with(wanted)) sched_yield();
  const auto place = waiting_place(static_cast<std::uint32_t>(sleeper.thread.load()));
  EXPECT_TRUE(place);
  if (place) {
    EXPECT_NE(code_at(place->instruction).find("/libc"), std::string::npos) << code_at(place->instruction);
    EXPECT_GE(place->stack, sleeper.low);
    EXPECT_LT(place->stack, sleeper.top);
  }
  EXPECT_EQ(write(sleeper.pipe[1], "", 1), 1);
  thread.join();
  close(sleeper.pipe[0]), close(sleeper.pipe[1]);
}

TEST(WaitingPlace, OfTheThreadThatAsksAndOfNoThreadIsNone) {
  EXPECT_FALSE(waiting_place(0));
  EXPECT_FALSE(waiting_place(0xffffffff));
  // It asks by a system call, and does not wait: the kernel says that it runs, or tells of the read() that asks.
  if (const auto own = waiting_place(static_cast<std::uint32_t>(gettid()))) {
    EXPECT_NE(code_at(own->instruction).find("/libc"), std::string::npos);
  }
}

}  // namespace
}  // namespace farheap::os
