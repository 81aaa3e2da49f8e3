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
  promise(first_, 100 * kMiB);
  EXPECT_EQ(unused_when_quiet(), 0u) << "the only one may take it at once";
  promise(second_, 60 * kMiB);
  EXPECT_EQ(unused_after(IdlePromises::kQuietLooks), 0u) << "it has not been watched for long";
  const std::uint64_t unused = unused_after(1);
  EXPECT_LE(unused, 60 * kMiB) << "what it has already is no promise";
  EXPECT_GT(unused, 60 * kMiB - 32 * kMiB);
}

TEST_F(IdlePromisesTest, WhoGrowsIsIdleNoMore) {
  promise(first_, 100 * kMiB);
  promise(second_, 60 * kMiB);
  ASSERT_NE(unused_when_quiet(), 0u);
  second_.grow();
  EXPECT_EQ(unused_after(1), 0u);
  EXPECT_NE(unused_when_quiet(), 0u) << "until it has been quiet again";
}

TEST_F(IdlePromisesTest, WhatHasEndedIsNotLent) {
  promise(first_, 100 * kMiB);
  promise(second_, 60 * kMiB);
  ASSERT_NE(unused_when_quiet(), 0u);
  second_.end();
  EXPECT_EQ(idle_.unused_bytes(*run_page_, own_, promised(), now_), 0u) << "not even before the next look";
  EXPECT_EQ(unused_after(1), 0u);
}

TEST_F(IdlePromisesTest, WhoPagesAsksByItself) {
  promise(first_, 100 * kMiB);
  promise(second_, 60 * kMiB).watched.store(1);
  EXPECT_EQ(unused_when_quiet(), 0u);
}

TEST_F(IdlePromisesTest, ALookIsNotTakenEachTime) {
  promise(first_, 100 * kMiB);
  promise(second_, 60 * kMiB);
  for (int i = 0; i < 2 * IdlePromises::kQuietLooks; ++i) {
    EXPECT_EQ(idle_.unused_bytes(*run_page_, own_, promised(), now_), 0u) << "that was one look";
  }
}

TEST_F(IdlePromisesTest, ALimitRisesByWhatTheIdleDoNotUse) {
  constexpr std::uint64_t kMany = 1024 * kMiB / base::kPageBytes;
  run_page_->budget_bytes.store(512 * kMiB);
  promise(first_, 200 * kMiB);
  promise(second_, 200 * kMiB);
  TreeBudget budget(*run_page_);
  const std::uint64_t before = budget.page_limit(kMany / 16, kMany);
  const auto until = base::Clock::now() + std::chrono::seconds(20);
  std::uint64_t after = before;
  while (after == before && base::Clock::now() < until) after = budget.page_limit(kMany / 16, kMany);
  EXPECT_NEAR(static_cast<double>((after - before) * base::kPageBytes), 200.0 * kMiB, 32.0 * kMiB);
  second_.grow();
  const auto is_back = [&] { return after <= before + kMiB / base::kPageBytes; };
  while (!is_back() && base::Clock::now() < until) after = budget.page_limit(kMany / 16, kMany);
  EXPECT_TRUE(is_back()) << after << " pages, " << before << " before";
}

}  // namespace
}  // namespace farheap::pager
