// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/run_page.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace farheap::base {
namespace {

class RunPageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = memfd_create("run-page-test", MFD_CLOEXEC);
    ASSERT_GE(file_, 0);
    auto page = create_run_page(file_, 1000);
    ASSERT_TRUE(page) << page.error().message();
    page_ = *page;
  }
  void TearDown() override {
    if (page_ != nullptr) munmap(page_, sizeof *page_);
    close(file_);
  }
  // The id of a process that is gone.
  static pid_t dead_process() {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
    return child;
  }
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

  int file_ = -1;
  RunPage* page_ = nullptr;
};

TEST_F(RunPageTest, IsOneForAllWhoOpenIt) {
  auto other = open_run_page(path());
  ASSERT_TRUE(other) << other.error().message();
  EXPECT_EQ((*other)->budget_bytes.load(), 1000U);
  (*other)->counters.faults += 7;
  EXPECT_EQ(page_->counters.faults.load(), 7U);
  munmap(*other, sizeof(RunPage));
}

TEST_F(RunPageTest, RefusesWhatIsNoRunPage) {
  EXPECT_EQ(open_run_page("/no/such/page").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(open_run_page("/dev/null").error().code, ErrorCode::kCorrupt);
  page_->format = kRunPageFormat + 1;
  EXPECT_EQ(open_run_page(path()).error().code, ErrorCode::kCorrupt);
}

TEST_F(RunPageTest, CanBeLookedAtFromOutside) {
  RunSlot& own = page_->claim(getpid());
  page_->start_heat(own).count(5 << 20, Heat::kStore, 3);
  const auto seen = look_at_run_page(path());
  ASSERT_TRUE(seen) << seen.error().message();
  const auto slot = static_cast<std::size_t>(&own - page_->slots);
  EXPECT_EQ((*seen)->slots[slot].heats.load(), 1U);
  EXPECT_EQ((*seen)->heat(slot).read().pid, getpid());
  EXPECT_EQ((*seen)->heat(slot).read().ranges[2][Heat::kStore], 3U);
  EXPECT_EQ(look_at_run_page("/dev/null").error().code, ErrorCode::kCorrupt);
  page_->format = kRunPageFormat - 1;
  EXPECT_EQ(look_at_run_page(path()).error().code, ErrorCode::kCorrupt);
}

TEST_F(RunPageTest, HeatTablesTakeMemoryOnlyWhereAProcessPages) {
  struct stat status{};
  ASSERT_EQ(fstat(file_, &status), 0);
  const auto before = status.st_blocks * 512;
  EXPECT_LT(before, 256 << 10) << "the page was written as a whole when it was made";
  (void)page_->start_heat(page_->claim(getpid()));
  ASSERT_EQ(fstat(file_, &status), 0);
  EXPECT_LE(status.st_blocks * 512 - before, 3 * 4096);
}

TEST_F(RunPageTest, SumsTheLivingAndForgetsTheDead) {
  page_->claim(getpid()).bytes = 300;
  page_->claim(dead_process()).bytes = 5000;
  EXPECT_EQ(page_->total_bytes(), 300U);
  EXPECT_EQ(page_->counters.peak_bytes.load(), 300U);
  page_->claim(getpid()).bytes = 200;
  EXPECT_EQ(page_->total_bytes(), 200U);
  EXPECT_EQ(page_->counters.peak_bytes.load(), 300U) << "the peak stays";
}

TEST_F(RunPageTest, ASlotIsKeptAcrossExecAndReusedAfterRelease) {
  RunSlot& own = page_->claim(getpid());
  EXPECT_EQ(&page_->claim(getpid()), &own);
  RunSlot& other = page_->claim(getppid());
  EXPECT_NE(&other, &own);
  own.bytes = 10;
  page_->release(own);
  EXPECT_EQ(own.bytes.load(), 0U);
  EXPECT_EQ(&page_->claim(getpid()), &own);
}

TEST_F(RunPageTest, SlotsOfTheDeadAreTakenOver) {
  const pid_t dead = dead_process();
  for (auto& slot : page_->slots) slot.pid = dead, slot.bytes = 1;
  RunSlot& own = page_->claim(getpid());
  EXPECT_EQ(own.pid.load(), getpid());
  EXPECT_EQ(own.bytes.load(), 0U);
}

// A slot that waits for a child is nobody else's, however many are forked, born and ended at once.
TEST_F(RunPageTest, ManyAreBornAtOnceEachInASlotOfItsOwn) {
  constexpr int kFamilies = 6;
  std::vector<pid_t> alive;  // two numbers of living processes for each
  for (int i = 0; i < 2 * kFamilies; ++i) {
    alive.push_back(fork());
    if (alive.back() == 0) {
      pause();
      _exit(0);
    }
  }
  std::atomic<int> mixed_up = 0;
  std::vector<std::thread> families;
  for (int i = 0; i < kFamilies; ++i) {
    families.emplace_back([&, parent = alive[2 * i], child = alive[2 * i + 1], mark = 1000U + i] {
      for (int round = 0; round < 2000; ++round) {
        RunSlot& expected = page_->claim_for_child(parent, mark, mark + 1);
        (void)page_->others(expected);
        RunSlot& born = page_->be_born(expected, parent, child);
        mixed_up +=
            &born != &expected || born.pid != child || born.promised_bytes != mark || born.inherited_bytes != mark + 1;
        page_->release(born);
      }
    });
  }
  for (auto& family : families) family.join();
  EXPECT_EQ(mixed_up, 0);
  for (const pid_t process : alive) {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
}

}  // namespace
}  // namespace farheap::base
