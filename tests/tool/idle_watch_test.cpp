// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tool/idle_watch.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "base/units.hpp"

namespace farheap::tool {
namespace {

using base::kMiB;

constexpr std::uint64_t kMuch = 1000 * kMiB, kLess = 600 * kMiB;
// More than such a process has; the sanitizers' take more than others.
constexpr std::uint64_t kOwn = 256 * kMiB;

// A process that touches as much as it is told to.
class Grower {
 public:
  Grower() {
    if (pipe(told_) != 0 || pipe(done_) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) live();
    wait();
  }
  ~Grower() {
    for (const int end : {told_[0], told_[1], done_[0], done_[1]}) close(end);
    end();
  }
  Grower(const Grower&) = delete;
  Grower& operator=(const Grower&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void grow(std::size_t bytes) const {
    ASSERT_EQ(write(told_[1], &bytes, sizeof bytes), static_cast<ssize_t>(sizeof bytes));
    wait();
  }
  void end() {
    if (pid_ > 0) kill(pid_, SIGKILL), waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  void wait() const {
    char word = 0;
    ASSERT_EQ(read(done_[0], &word, 1), 1);
  }
  [[noreturn]] void live() const {
    close(told_[1]);
    std::size_t bytes = 0;
    while (write(done_[1], "", 1) == 1 && read(told_[0], &bytes, sizeof bytes) == sizeof bytes) {
      void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      std::memset(at, 1, bytes);
    }
    _exit(0);
  }
  int told_[2] = {}, done_[2] = {};
  pid_t pid_ = 0;
};

class IdleWatchTest : public testing::Test {
 protected:
  base::RunSlot& promise(pid_t to, std::uint64_t bytes) {
    base::RunSlot& slot = run_page_->claim(to);
    slot.promised_bytes.store(bytes);
    return slot;
  }
  std::uint64_t lent_after(std::uint32_t looks) {
    for (std::uint32_t i = 0; i < looks; ++i) watch_.look();
    return run_page_->others(own_).lent_bytes;
  }
  std::uint64_t lent_when_quiet() { return lent_after(IdleWatch::kQuietLooks + 1); }

  std::unique_ptr<base::RunPage> run_page_ = std::make_unique<base::RunPage>();
  base::RunSlot& own_ = run_page_->claim(getpid());
  IdleWatch watch_{*run_page_};
  Grower first_, second_;
};

// A tree of idle server processes kept a fifth of a budget that none of them used.
TEST_F(IdleWatchTest, WhatTheIdleDoNotUseIsLentButForTheLargest) {
  promise(first_.pid(), kMuch);
  EXPECT_EQ(lent_when_quiet(), 0u) << "the only one may take it at once";
  promise(second_.pid(), kLess);
  EXPECT_EQ(lent_after(IdleWatch::kQuietLooks), 0u) << "it has not been watched for long";
  const std::uint64_t lent = lent_after(1);
  EXPECT_LE(lent, kLess) << "what it has already is no promise";
  EXPECT_GT(lent, kLess - kOwn);
}

TEST_F(IdleWatchTest, WhoGrowsIsIdleNoMore) {
  promise(first_.pid(), kMuch);
  promise(second_.pid(), kLess);
  ASSERT_NE(lent_when_quiet(), 0u);
  second_.grow(2 * kMiB);
  EXPECT_EQ(lent_after(1), 0u);
  EXPECT_NE(lent_when_quiet(), 0u) << "until it has been quiet again";
}

// One page that a server touched now and then took all that was lent back, each time.
TEST_F(IdleWatchTest, WhoGrowsALittleLosesNoMoreThanThat) {
  promise(first_.pid(), kMuch);
  promise(second_.pid(), kLess);
  const std::uint64_t before = lent_when_quiet();
  second_.grow(64 << 10);
  const std::uint64_t after = lent_after(1);
  EXPECT_LE(after + (64 << 10), before);
  EXPECT_GE(after + kMiB, before);
}

TEST_F(IdleWatchTest, WhatHasEndedIsNotLent) {
  promise(first_.pid(), kMuch);
  promise(second_.pid(), kLess);
  ASSERT_NE(lent_when_quiet(), 0u);
  second_.end();
  EXPECT_EQ(run_page_->others(own_).lent_bytes, 0u) << "not even before the next look";
  EXPECT_EQ(lent_after(1), 0u);
}

TEST_F(IdleWatchTest, WhoPagesAsksByItself) {
  promise(first_.pid(), kMuch);
  base::RunSlot& second = promise(second_.pid(), kLess);
  ASSERT_NE(lent_when_quiet(), 0u);
  second.watched.store(1);
  EXPECT_EQ(run_page_->others(own_).lent_bytes, 0u);
  watch_.look();
  EXPECT_EQ(second.unused_bytes.load(), 0u);
}

TEST_F(IdleWatchTest, WhatWasSeenLongAgoIsNotLent) {
  promise(first_.pid(), kMuch);
  promise(second_.pid(), kLess);
  ASSERT_NE(lent_when_quiet(), 0u);
  run_page_->looked_ns.fetch_sub(1'000'000'000);
  EXPECT_EQ(run_page_->others(own_).lent_bytes, 0u);
}

TEST_F(IdleWatchTest, AnotherProgramInASlotBeginsAnew) {
  promise(first_.pid(), kMuch);
  promise(second_.pid(), kLess);
  ASSERT_NE(lent_when_quiet(), 0u);
  promise(second_.pid(), kLess);  // as after an exec
  EXPECT_EQ(run_page_->others(own_).lent_bytes, 0u);
}

// What the children of a server that has gone share was counted by none of them.
TEST_F(IdleWatchTest, WhatAParentLeftToItsChildrenIsUsed) {
  constexpr std::uint64_t kLeft = 40 * kMiB;
  int pids[2], up[2], end[2];
  ASSERT_EQ(pipe(up), 0);
  ASSERT_EQ(pipe(end), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    void* const at = mmap(nullptr, kLeft, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memset(at, 1, kLeft);
    for (int& pid : pids) {
      pid = fork();
      if (pid != 0) continue;
      close(end[1]);
      char word = 0;
      _exit(read(end[0], &word, 1) == 0 ? 0 : 1);
    }
    _exit(write(up[1], pids, sizeof pids) == sizeof pids ? 0 : 1);
  }
  ASSERT_EQ(read(up[0], pids, sizeof pids), static_cast<ssize_t>(sizeof pids));
  ASSERT_EQ(waitpid(parent, nullptr, 0), parent);
  for (const int pid : pids) promise(pid, kMuch).inherited_bytes.store(kLeft + 4 * kMiB);
  std::uint64_t lent = 0;
  while (lent == 0) lent = lent_after(1);  // they may still be on their way to sleep
  EXPECT_LE(lent, kMuch - kLeft / 2);
  for (const int number : {up[0], up[1], end[0], end[1]}) close(number);
}

TEST(IdleWatchThreadTest, LooksWhileSomethingPages) {
  const auto run_page = std::make_unique<base::RunPage>();
  const IdleWatchThread thread(*run_page);
  run_page->counters.paging_processes.store(1);
  while (run_page->looked_ns.load() == 0) sched_yield();  // or it never ends
}

}  // namespace
}  // namespace farheap::tool
