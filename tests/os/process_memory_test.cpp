// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/process_memory.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <vector>

namespace farheap::os {
namespace {

constexpr std::size_t kBytes = 8 << 20;

struct Seen {
  std::uint64_t own, own_later, of_process;
};

// The kernel has no memory for a main thread that has ended: the process was taken for an empty one, and went over its
// budget.
TEST(ProcessMemory, IsSeenAfterTheEndOfTheMainThread) {
  static int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    pthread_t thread;
    static ProcessMemory memory;
    (void)memory.anonymous_bytes();  // opens what will be of no use
    const auto look = [](void*) -> void* {
      std::vector<char> filled(kBytes);
      std::memset(filled.data(), 1, filled.size());
      // Until the main thread is a zombie.
      while (std::ifstream("/proc/self/statm").get() != '0') usleep(1000);
      Seen seen{};
      seen.own = memory.anonymous_bytes();
      seen.own_later = memory.anonymous_bytes();
      seen.of_process = ProcessMemory::use_of(getpid()).anonymous_bytes;
      const bool is_written = write(ends[1], &seen, sizeof seen) == sizeof seen;
      _exit(is_written ? 0 : 1);
    };
    if (pthread_create(&thread, nullptr, look, nullptr) != 0) _exit(2);
    for (;;) syscall(SYS_exit, 0);  // pthread_exit() throws, and the framework catches it
  }
  Seen seen{};
  close(ends[1]);
  EXPECT_EQ(read(ends[0], &seen, sizeof seen), static_cast<ssize_t>(sizeof seen));
  close(ends[0]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_GE(seen.own, kBytes);
  EXPECT_GE(seen.own_later, kBytes);
  EXPECT_GE(seen.of_process, kBytes);
}

TEST(ProcessMemory, OfAProcessThatIsGoneIsNothing) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t end;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(ProcessMemory::use_of(child).anonymous_bytes, 0u);  // not waited for yet
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(ProcessMemory::use_of(child).anonymous_bytes, 0u);
}

}  // namespace
}  // namespace farheap::os
