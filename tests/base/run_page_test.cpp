// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/run_page.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/sealed_file.hpp"

namespace farheap::base {
namespace {

class RunPageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto files = make_run_files(1000, "prog arguments");
    ASSERT_TRUE(files) << files.error().message();
    files_ = *files;
    page_ = open_once_more();
    ASSERT_NE(page_, nullptr);
    open_locks(*page_, files_.counters);
    ASSERT_GE(page_->locks, 0);
  }
  void TearDown() override {
    forget(page_);
    close(files_.configuration);
    close(files_.counters);
  }
  // As another process of the run has it, with locks of its own.
  [[nodiscard]] RunPage* open_once_more() const {
    auto page = map_run_page(files_);
    EXPECT_TRUE(page) << page.error().message();
    return page ? *page : nullptr;
  }
  static void forget(RunPage* page) {
    if (page == nullptr) return;
    if (page->locks >= 0) close(page->locks);
    munmap(page, sizeof *page);
  }
  // The id of a process that is gone.
  static pid_t dead_process() {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
    return child;
  }
  [[nodiscard]] RunPlace place() const { return {getpid(), files_, -1}; }
  static std::string path_of(int file) { return "/proc/self/fd/" + std::to_string(file); }
  // What a child finds out; 0 is good.
  template <class Body>
  static int status_of_child(Body body) {
    const pid_t child = fork();
    if (child == 0) _exit(body());
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
  }

  RunFiles files_;
  RunPage* page_ = nullptr;
};

TEST_F(RunPageTest, IsOneForAllWhoOpenIt) {
  auto other = open_run_page(place());
  ASSERT_TRUE(other) << other.error().message();
  EXPECT_EQ((*other)->budget_bytes.load(), 1000U);
  EXPECT_EQ((*other)->command_text(), "prog arguments");
  (*other)->counters.faults += 7;
  EXPECT_EQ(page_->counters.faults.load(), 7U);
  RunPage* const found = find_run_page(place().text().c_str());
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->counters.faults.load(), 7U);
  forget(found);
  forget(*other);
}

TEST_F(RunPageTest, APlaceIsReadAsItIsWritten) {
  const RunPlace written{12, {700, 701}, 702};
  const auto read = RunPlace::parse(written.text());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->text(), "12:700:701:702");
  EXPECT_EQ(RunPlace::parse("12:700:701")->password, -1);
  for (const char* const wrong : {"", "12", "12:700", "12:700:", "12:700:701:", "12:700:701:x", "-1:700:701",
                                  "12:700:701:702:703", "/proc/12/fd/700", "12:-1:701", "99999999999:1:2"}) {
    EXPECT_FALSE(RunPlace::parse(wrong)) << wrong;
  }
}

TEST_F(RunPageTest, RefusesWhatIsNoRunPage) {
  RunPlace nowhere = place();
  nowhere.tool = 0x7ffffffe, nowhere.files = {900, 901};
  EXPECT_EQ(open_run_page(nowhere).error().code, ErrorCode::kNotFound);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  EXPECT_EQ(map_run_page({null, files_.counters}).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(map_run_page({files_.configuration, null}).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(map_run_page({files_.counters, files_.configuration}).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(find_run_page("no place"), nullptr);
  EXPECT_EQ(find_run_page(nullptr), nullptr);
  close(null);
}

// With what a run of another version left under the same numbers, or another run.
TEST_F(RunPageTest, RefusesWhatDoesNotBelongTogether) {
  RunConfiguration other;
  other.format = kRunPageFormat + 1;
  const auto newer = make_sealed_file(kRunPageName, &other, sizeof other, Sealed::kContent);
  EXPECT_EQ(map_run_page({*newer, files_.counters}).error().code, ErrorCode::kCorrupt);
  const auto another = make_run_files(1, "");
  EXPECT_EQ(map_run_page({another->configuration, files_.counters}).error().code, ErrorCode::kCorrupt);
  for (const int file : {*newer, another->configuration, another->counters}) close(file);
}

// Whoever had the page could cut it, and the tool ended by SIGBUS.
TEST_F(RunPageTest, NobodyCutsItOrChangesWhatWasSaidWhenItBegan) {
  for (const int file : {files_.configuration, files_.counters}) {
    EXPECT_EQ(ftruncate(file, 0), -1);
    EXPECT_EQ(ftruncate(file, 64 << 20), -1);
    struct stat status{};
    ASSERT_EQ(fstat(file, &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600U);
  }
  EXPECT_EQ(pwrite(files_.configuration, "x", 1, 0), -1);
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, files_.configuration, 0), MAP_FAILED);
  EXPECT_DEATH(page_->budget_bytes.store(1), "");
}

TEST_F(RunPageTest, AFileThatCanBeCutIsRefused) {
  const int unsealed = memfd_create(kRunCountersName, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(unsealed, sizeof(RunShared)), 0);
  const auto refused = map_run_page({files_.configuration, unsealed});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), ::testing::HasSubstr("it can still be changed"));
  close(unsealed);
}

// The next process of root paged to where another user had said.
TEST_F(RunPageTest, WhatAnotherUserMadeIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ASSERT_EQ(fchown(files_.configuration, 65534, 65534), 0);
  const auto refused = map_run_page(files_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), ::testing::HasSubstr("another user made it"));
  EXPECT_EQ(find_run_page(place().text().c_str()), nullptr);
  ASSERT_EQ(fchown(files_.configuration, 0, 0), 0);
  EXPECT_EQ(status_of_child([&] {
              if (setresuid(65534, 65534, 65534) != 0) return 2;
              if (open(path_of(files_.counters).c_str(), O_RDWR) >= 0) return 3;
              return map_run_page(files_) ? 0 : 4;  // root's is trusted by all who have inherited it
            }),
            0);
}

TEST_F(RunPageTest, CanBeLookedAtFromOutside) {
  RunSlot& own = page_->claim(getpid());
  page_->start_heat(own).count(5 << 20, Heat::kStore, 3);
  const auto seen = RunView::open(path_of(files_.configuration), path_of(files_.counters), geteuid());
  ASSERT_TRUE(seen) << seen.error().message();
  const RunPage& page = (*seen)->page();
  const auto slot = static_cast<std::size_t>(&own - page_->slots);
  EXPECT_EQ(page.command_text(), "prog arguments");
  EXPECT_EQ(page.slots[slot].heats.load(), 1U);
  EXPECT_FALSE(page.is_gone(page.slots[slot]));
  EXPECT_EQ(page.heat(slot).read().pid, getpid());
  EXPECT_EQ(page.heat(slot).read().ranges[2][Heat::kStore], 3U);
  page_->counters.faults += 7;
  EXPECT_EQ(page.counters.faults.load(), 0U) << "a copy";
  EXPECT_TRUE((*seen)->refresh());
  EXPECT_EQ(page.counters.faults.load(), 7U);
  EXPECT_EQ(RunView::open("/dev/null", path_of(files_.counters), 0).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(RunPageTest, HeatTablesTakeMemoryOnlyWhereAProcessPages) {
  RunSlot& own = page_->claim(getpid());  // looks at all slots
  struct stat status{};
  ASSERT_EQ(fstat(files_.counters, &status), 0);
  const auto before = status.st_blocks * 512;
  EXPECT_LT(before, 256 << 10) << "the page was written as a whole when it was made";
  (void)page_->start_heat(own);
  ASSERT_EQ(fstat(files_.counters, &status), 0);
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
  (void)page_->claim(getpid());
  page_->release(page_->slots[0]);
  const pid_t dead = dead_process();
  for (auto& slot : page_->slots) slot.holder = SlotHolder(dead, page_->pid_namespace), slot.bytes = 1;
  RunSlot& own = page_->claim(getpid());
  EXPECT_EQ(own.pid(), getpid());
  EXPECT_EQ(own.bytes.load(), 0U);
}

// A number that is used again made a slot count for ever.
TEST_F(RunPageTest, ASlotWhoseNumberWasUsedAgainCountsNoMore) {
  (void)page_->claim(getpid());
  RunSlot& old = page_->slots[5];
  // This process's parent lives, but holds no lock: it is another one than the one that had the slot.
  old.holder = SlotHolder(getppid(), page_->pid_namespace).locked();
  old.bytes = 5000, old.promised_bytes = 5000;
  EXPECT_TRUE(page_->is_gone(old));
  EXPECT_EQ(page_->others(page_->slots[0]).promised_bytes, 0U);
  EXPECT_EQ(page_->total_bytes(), 0U);
  EXPECT_EQ(old.pid(), 0);
}

// Process 1 of one pid namespace took the slot of process 1 of another.
TEST_F(RunPageTest, TheSameNumberInAnotherNamespaceIsAnotherProcess) {
  RunSlot& own = page_->claim(getpid());
  page_->release(own);
  const SlotHolder foreign(getpid(), page_->pid_namespace + 1);
  own.holder = foreign, own.bytes = 5000, own.promised_bytes = 6000;
  RunSlot& claimed = page_->claim(getpid());
  EXPECT_NE(&claimed, &own);
  EXPECT_TRUE(own.holder.load().is_same_process(foreign));
  EXPECT_FALSE(page_->is_gone(own)) << "nobody here can tell";
  EXPECT_EQ(page_->others(claimed).promised_bytes, 6000U);
  own.holder = foreign.locked();
  EXPECT_TRUE(page_->is_gone(own)) << "it had a lock, and has it no more";
  EXPECT_EQ(page_->others(claimed).promised_bytes, 0U);
}

TEST_F(RunPageTest, ASlotIsItsProcesssForAsLongAsItHoldsItsLock) {
  (void)page_->claim(getpid());
  int ready[2], end[2];
  ASSERT_EQ(pipe(ready) + pipe(end), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(end[1]);
    RunSlot& expected = page_->slots[1];
    expected.holder = SlotHolder(-getppid(), page_->pid_namespace);
    RunSlot& born = page_->be_born(expected, getppid(), getpid());
    born.bytes = 5000;
    char word = born.holder.load().is_locked() ? 'y' : 'n';
    if (write(ready[1], &word, 1) != 1) _exit(1);
    _exit(read(end[0], &word, 1) == 0 ? 0 : 1);
  }
  char word = 0;
  ASSERT_EQ(read(ready[0], &word, 1), 1);
  EXPECT_EQ(word, 'y');
  RunSlot& childs = page_->slots[1];
  EXPECT_EQ(childs.pid(), child);
  EXPECT_FALSE(page_->is_gone(childs));
  // Whatever number stands there.
  childs.holder = SlotHolder(child, page_->pid_namespace + 1).locked();
  EXPECT_FALSE(page_->is_gone(childs));
  EXPECT_EQ(page_->total_bytes(), 5000U);
  close(end[1]);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(page_->is_gone(childs));
  EXPECT_EQ(page_->total_bytes(), 0U);
  for (const int file : {ready[0], ready[1], end[0]}) close(file);
}

// The smallest number there is was taken from the time.
TEST_F(RunPageTest, ALookAtATimeThatCannotBeIsNone) {
  RunSlot& own = page_->claim(getpid());
  for (const pid_t idle : {2, 3}) {
    RunSlot& slot = page_->claim(idle);
    slot.holder = SlotHolder(idle, page_->pid_namespace + 1);  // whose numbers mean nothing here: it lives
    slot.promised_bytes.store(1000);
    slot.unused_bytes.store(1000);
  }
  page_->looked_ns.store(std::chrono::steady_clock::now().time_since_epoch().count());
  ASSERT_EQ(page_->others(own).lent_bytes, 1000u);
  for (const std::int64_t never : {INT64_MIN, std::int64_t{-1}, INT64_MAX}) {
    page_->looked_ns.store(never);
    EXPECT_EQ(page_->others(own).lent_bytes, 0u) << never;
  }
}

// It was its own parent, of which it was asked for ever whether it is there.
TEST_F(RunPageTest, AChildOfTheSmallestNumberHasNoParent) {
  RunSlot& own = page_->claim(getpid());
  RunSlot& child = page_->claim_for_child(getpid(), 1000, 0);
  child.holder = SlotHolder(-(1 << 30), page_->pid_namespace);
  ASSERT_EQ(child.pid(), -(1 << 30));
  EXPECT_TRUE(page_->is_gone(child));
  EXPECT_EQ(page_->others(own).promised_bytes, 0u);
}

// Whoever is in the run can write anything to what is shared. At worst the sums are wrong.
TEST_F(RunPageTest, AnyBytesInWhatIsSharedEndNothing) {
  (void)page_->claim(getpid());
  auto* const shared = reinterpret_cast<std::byte*>(static_cast<RunShared*>(page_));
  for (const int byte : {0xff, 0x80, 0x7f, 0x01, 0x55}) {
    std::memset(shared, byte, sizeof(RunShared));
    RunSlot& own = page_->claim(getpid());
    HeatTable& heat = page_->start_heat(own);
    std::memset(static_cast<void*>(&heat), byte, sizeof heat);
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
      heat.count(offset, Heat::kStore, 1);
    }
    (void)heat.read().total();
    (void)page_->total_bytes();
    (void)page_->others(own);
    (void)page_->pulse.beats();
    page_->pulse.beat(1);
    RunSlot& child = page_->claim_for_child(getpid(), 1, 1);
    page_->forked(child, getpid());
    EXPECT_GE(&own, page_->slots);
    EXPECT_LT(&child, page_->slots + RunPage::kSlots);
    page_->release(own);
  }
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
        mixed_up += &born != &expected || born.pid() != child || born.promised_bytes != mark ||
                    born.inherited_bytes != mark + 1;
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
