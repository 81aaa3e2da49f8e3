// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/idle_promises.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <vector>

#include "base/units.hpp"
#include "pager/tree_budget.hpp"

namespace farheap::pager {
namespace {

using base::kMiB;

// More than such a process has; the sanitizers' take more than others.
constexpr std::uint64_t kOwn = 256 * kMiB;

// A process that touches a MiB each time it is told to.
class Grower {
 public:
  Grower() {
    if (pipe(told_) != 0 || pipe(done_) != 0) std::abort();
    pid_ = fork();
    if (pid_ != 0) return;
    close(told_[1]);
    char word = 0;
    while (read(told_[0], &word, 1) == 1) {
      void* const at = mmap(nullptr, kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      std::memset(at, 1, kMiB);
      if (write(done_[1], &word, 1) != 1) break;
    }
    _exit(0);
  }
  ~Grower() {
    for (const int end : {told_[0], told_[1], done_[0], done_[1]}) close(end);
    end();
  }
  Grower(const Grower&) = delete;
  Grower& operator=(const Grower&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void grow() const {
    char word = 0;
    ASSERT_EQ(write(told_[1], &word, 1), 1);
    ASSERT_EQ(read(done_[0], &word, 1), 1);
  }
  void end() {
    if (pid_ > 0) kill(pid_, SIGKILL), waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  int told_[2] = {}, done_[2] = {};
  pid_t pid_ = 0;
};

class IdlePromisesTest : public testing::Test {
 protected:
  base::RunSlot& promise(const Grower& to, std::uint64_t bytes) {
    base::RunSlot& slot = run_page_->claim(to.pid());
    slot.promised_bytes.store(bytes);
    return slot;
  }
  std::uint64_t promised() { return run_page_->others(own_).promised_bytes; }
  // After so many looks, one as soon as it may be after the other.
  std::uint64_t unused_after(int looks) {
    std::uint64_t unused = 0;
    for (int i = 0; i < looks; ++i) {
      now_ += std::chrono::seconds(10);
      unused = idle_.unused_bytes(*run_page_, own_, promised(), now_);
    }
    return unused;
  }
  std::uint64_t unused_when_quiet() { return unused_after(IdlePromises::kQuietLooks + 1); }

  std::unique_ptr<base::RunPage> run_page_ = std::make_unique<base::RunPage>();
  base::RunSlot& own_ = run_page_->claim(getpid());
  IdlePromises idle_;
  base::Clock::time_point now_ = base::Clock::now();
  Grower first_, second_;
};

// A tree of idle server processes kept a fifth of a budget that none of them used.
TEST_F(IdlePromisesTest, WhatTheIdleDoNotUseIsLentButForTheLargest) {
  promise(first_, 1000 * kMiB);
  EXPECT_EQ(unused_when_quiet(), 0u) << "the only one may take it at once";
  promise(second_, 600 * kMiB);
  EXPECT_EQ(unused_after(IdlePromises::kQuietLooks), 0u) << "it has not been watched for long";
  const std::uint64_t unused = unused_after(1);
  EXPECT_LE(unused, 600 * kMiB) << "what it has already is no promise";
  EXPECT_GT(unused, 600 * kMiB - kOwn);
}

TEST_F(IdlePromisesTest, WhoGrowsIsIdleNoMore) {
  promise(first_, 1000 * kMiB);
  promise(second_, 600 * kMiB);
  ASSERT_NE(unused_when_quiet(), 0u);
  second_.grow();
  EXPECT_EQ(unused_after(1), 0u);
  EXPECT_NE(unused_when_quiet(), 0u) << "until it has been quiet again";
}

TEST_F(IdlePromisesTest, WhatHasEndedIsNotLent) {
  promise(first_, 1000 * kMiB);
  promise(second_, 600 * kMiB);
  ASSERT_NE(unused_when_quiet(), 0u);
  second_.end();
  EXPECT_EQ(idle_.unused_bytes(*run_page_, own_, promised(), now_), 0u) << "not even before the next look";
  EXPECT_EQ(unused_after(1), 0u);
}

TEST_F(IdlePromisesTest, WhoPagesAsksByItself) {
  promise(first_, 1000 * kMiB);
  promise(second_, 600 * kMiB).watched.store(1);
  EXPECT_EQ(unused_when_quiet(), 0u);
}

// What the children of a server that has gone share was counted by none of them.
TEST_F(IdlePromisesTest, WhatAParentLeftToItsChildrenIsUsed) {
  constexpr std::uint64_t kLeft = 40 * kMiB, kPromised = 1000 * kMiB;
  int pids[2];
  int born[2], end[2];
  ASSERT_EQ(pipe(born), 0);
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
    _exit(write(born[1], pids, sizeof pids) == sizeof pids ? 0 : 1);
  }
  ASSERT_EQ(read(born[0], pids, sizeof pids), static_cast<ssize_t>(sizeof pids));
  ASSERT_EQ(waitpid(parent, nullptr, 0), parent);
  for (const int pid : pids) {
    base::RunSlot& slot = run_page_->claim(pid);
    slot.promised_bytes.store(kPromised);
    slot.inherited_bytes.store(kLeft + 4 * kMiB);
  }
  const std::uint64_t unused = unused_when_quiet();
  EXPECT_GT(unused, 0u);
  EXPECT_LE(unused, kPromised - kLeft / 2);
  for (const int number : {born[0], born[1], end[0], end[1]}) close(number);
}

TEST_F(IdlePromisesTest, ALookIsNotTakenEachTime) {
  promise(first_, 1000 * kMiB);
  promise(second_, 600 * kMiB);
  for (int i = 0; i < 2 * IdlePromises::kQuietLooks; ++i) {
    EXPECT_EQ(idle_.unused_bytes(*run_page_, own_, promised(), now_), 0u) << "that was one look";
  }
}

TEST_F(IdlePromisesTest, ALimitRisesByWhatTheIdleDoNotUse) {
  constexpr std::uint64_t kMany = 4096 * kMiB / base::kPageBytes;
  run_page_->budget_bytes.store(2048 * kMiB);
  promise(first_, 800 * kMiB);
  promise(second_, 800 * kMiB);
  TreeBudget budget(*run_page_);
  const std::uint64_t before = budget.page_limit(kMany / 64, kMany);
  const auto until = base::Clock::now() + std::chrono::seconds(20);
  std::uint64_t after = before;
  const auto has_risen = [&] { return after > before + kMany / 16; };
  while (!has_risen() && base::Clock::now() < until) after = budget.page_limit(kMany / 64, kMany);
  EXPECT_NEAR(static_cast<double>((after - before) * base::kPageBytes), 800.0 * kMiB, static_cast<double>(kOwn));
  second_.grow();
  const auto is_back = [&] { return after <= before + kMiB / base::kPageBytes; };
  while (!is_back() && base::Clock::now() < until) after = budget.page_limit(kMany / 64, kMany);
  EXPECT_TRUE(is_back()) << after << " pages, " << before << " before";
}

}  // namespace
}  // namespace farheap::pager
