// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What dead members of a family held is taken back, whichever way they ended, and nothing that a living one holds.
#include "segment/family.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <atomic>
#include <filesystem>
#include <vector>

#include "block_map_worker.hpp"

namespace farheap::segment {
namespace {

constexpr std::uint64_t kCapacityPages = 1 << 16;

class FamilyTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = "/var/tmp/farheap-family-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    // One that parent and child share, as engines on servers are. (Of a scratch file a fork makes a copy.)
    auto store = open_store("file:" + folder_, {.block_bytes = kPageBytes, .lifetime = Lifetime::kKeep});
    ASSERT_TRUE(store.has_value()) << store.error().message();
    store_ = std::move(*store);
    auto map = BlockMap::make(*store_, kCapacityPages);
    ASSERT_TRUE(map.has_value()) << map.error().message();
    map_ = std::move(*map);
    ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  }
  void TearDown() override {
    map_.reset();
    store_.reset();
    std::filesystem::remove_all(folder_);
  }
  [[nodiscard]] std::uint64_t all_references() const {
    std::uint64_t sum = 0;
    for (Slot slot = 0; slot < 2 * kCapacityPages; ++slot) sum += map_->slots().references(slot);
    return sum;
  }
  void take_back() {
    map_->lock_for_fork();
    map_->unlock_after_fork(false);
  }
  // Grandchildren, too: this process takes them over.
  static void wait_for_all() {
    while (wait(nullptr) > 0) {
    }
  }
  std::string folder_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<BlockMap> map_;
};

// The processes of the random test. Returned statuses tell which of them found wrong bytes.
enum Ending { kExits, kLeavesGrandchild, kBecomesAnother, kIsKilled, kEndings };

int live_and_end(BlockMap& map, Worker& worker, Ending ending, unsigned seed) {
  worker.values_from(std::uint64_t{1 + seed} * 1'000'000);
  for (unsigned i = 0; i < seed % 30; ++i) {
    if (!worker.step().empty()) return 1;
  }
  if (ending == kLeavesGrandchild) {
    (void)forked(map, [&] { return live_and_end(map, worker, kExits, seed + 5000); });
  }
  if (!worker.read_all().empty()) return 2;
  if (ending == kBecomesAnother) execl("/bin/true", "true", nullptr);
  while (ending == kIsKilled) {
    if (!worker.step().empty()) return 3;
  }
  return 0;
}

TEST_F(FamilyTest, RandomForksAndEndings) {
  std::mt19937 random(1);
  Worker worker(*map_, 100, 1500, 3);
  std::vector<pid_t> to_kill, others;
  for (unsigned round = 0; round < 120; ++round) {
    for (unsigned steps = random() % 20; steps != 0; --steps) ASSERT_EQ(worker.step(), "") << "round " << round;
    const auto ending = static_cast<Ending>(random() % kEndings);
    const pid_t child = forked(*map_, [&] { return live_and_end(*map_, worker, ending, round); });
    ASSERT_GT(child, 0);
    (ending == kIsKilled ? to_kill : others).push_back(child);
    if (to_kill.size() < 4) continue;
    const std::size_t victim = random() % to_kill.size();
    kill(to_kill[victim], SIGKILL);
    EXPECT_EQ(status_of(to_kill[victim]), SIGKILL) << "wrong bytes in a child";
    to_kill.erase(to_kill.begin() + static_cast<std::ptrdiff_t>(victim));
  }
  for (const pid_t child : others) EXPECT_EQ(status_of(child), 0) << "wrong bytes in a child";
  for (const pid_t child : to_kill) kill(child, SIGKILL);
  wait_for_all();
  map_->family().set_patience_ms(0);
  take_back();
  EXPECT_EQ(worker.read_all(), "");
  // A process killed between two instructions that count and note may leave a few slots taken; these here work at
  // nothing else, and are killed three dozen times.
  EXPECT_GE(all_references(), worker.known());
  EXPECT_LE(all_references(), worker.known() + to_kill.size() + 36);
}

TEST_F(FamilyTest, EveryReferenceOfThoseThatEndedIsTakenBack) {
  Worker worker(*map_, 0, 2000, 3);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(worker.step(), "");
  for (unsigned round = 0; round < 40; ++round) {
    const auto ending = static_cast<Ending>(round % kIsKilled);
    const pid_t child = forked(*map_, [&] { return live_and_end(*map_, worker, ending, round); });
    for (int i = 0; i < 10; ++i) ASSERT_EQ(worker.step(), "");
    EXPECT_EQ(status_of(child), 0);
  }
  wait_for_all();
  take_back();
  EXPECT_EQ(all_references(), worker.known());
  EXPECT_EQ(worker.read_all(), "");
}

// Its place was taken before its time was set: a relative that looked in between gave its pages away.
TEST_F(FamilyTest, AChildThatIsJustExpectedIsNotTakenForDead) {
  struct Signs {
    std::atomic<bool> looks, done;
  };
  void* const shared = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto& signs = *static_cast<Signs*>(shared);
  for (int round = 0; round < 30; ++round) {
    auto family = Family::make(1024);
    ASSERT_TRUE(family.has_value());
    signs.looks = signs.done = false;
    const Family::Member looking = (*family)->expect_child();
    ASSERT_NE(looking, Family::kUnknown);
    const pid_t child = fork();
    if (child == 0) {
      (*family)->arrive();
      bool found = false;
      while (!signs.done) {
        found = found || (*family)->find_dead() != Family::kUnknown;
        signs.looks = true;
      }
      _exit(found ? 1 : 0);
    }
    while (!signs.looks) {
    }
    while ((*family)->expect_child() != Family::kUnknown) {
    }
    signs.done = true;
    EXPECT_EQ(status_of(child), 0);
  }
  munmap(shared, kPageBytes);
}

// A child's part was kept until the whole family had ended: each fork followed by writing took new room.
TEST_F(FamilyTest, TheStoreDoesNotGrowWithForks) {
  Worker worker(*map_, 0, 1024, 3);
  for (int round = 0; round < 60; ++round) {
    for (PageNumber page = 0; page < 1024; page += 64) ASSERT_EQ(worker.write({page, 64}), "");
    EXPECT_EQ(status_of(forked(*map_, [] { return 0; })), 0);
  }
  const auto usage = store_->usage();
  ASSERT_TRUE(usage.has_value());
  EXPECT_LE(usage->blocks, 2u * 1024);
}

TEST_F(FamilyTest, AParentThatEndedIsDeadToo) {
  Worker worker(*map_, 0, 256, 3);
  for (PageNumber page = 0; page < 256; page += 64) ASSERT_EQ(worker.write({page, 64}), "");
  int parent_there[2];
  ASSERT_EQ(pipe(parent_there), 0);
  const pid_t parent = forked(*map_, [&] {
    (void)forked(*map_, [&] {
      char gone;
      close(parent_there[1]);
      if (read(parent_there[0], &gone, 1) != 0) return 1;
      for (int i = 0; i < 20; ++i) {
        if (!worker.write({0, 64}).empty()) return 2;
      }
      take_back();
      return all_references() == 2 * 256 ? 0 : 3;  // its own and its grandparent's
    });
    return 0;
  });
  close(parent_there[1]);
  EXPECT_EQ(status_of(parent), 0);
  int status = -1;
  EXPECT_GT(wait(&status), 0);
  EXPECT_EQ(status, 0);
}

// A write that was on its way when its process ended could arrive in somebody else's page.
TEST_F(FamilyTest, WhatWasBeingWrittenIsLeftAloneForAWhile) {
  const pid_t child = forked(*map_, [&] {
    Worker worker(*map_, 0, 64, 3);
    if (!worker.write({0, 64}).empty()) return 1;
    map_->family().begin_write(map_->slot_of(7));
    return 0;
  });
  EXPECT_EQ(status_of(child), 0);
  take_back();
  EXPECT_EQ(all_references(), 1u);
  take_back();
  EXPECT_EQ(all_references(), 1u);
  map_->family().set_patience_ms(0);
  take_back();
  EXPECT_EQ(all_references(), 0u);
}

// The child has not come yet; it may be slow.
TEST_F(FamilyTest, AChildThatIsExpectedIsNotDead) {
  Worker worker(*map_, 0, 64, 3);
  ASSERT_EQ(worker.write({0, 64}), "");
  map_->lock_for_fork();
  map_->unlock_after_fork(true);
  take_back();
  EXPECT_EQ(all_references(), 128u);
  map_->family().set_patience_ms(0);
  take_back();
  EXPECT_EQ(all_references(), 64u) << "it never came";
}

TEST_F(FamilyTest, MoreMembersThanThereArePlacesFor) {
  Worker worker(*map_, 0, 64, 3);
  ASSERT_EQ(worker.write({0, 64}), "");
  int there[2];
  ASSERT_EQ(pipe(there), 0);
  std::vector<pid_t> children;
  for (Family::Member i = 0; i < Family::kMembers + 3; ++i) {
    children.push_back(forked(*map_, [&] {
      char gone;
      close(there[1]);
      if (read(there[0], &gone, 1) != 0) return 1;
      return worker.write({0, 64}).empty() && worker.read_all().empty() ? 0 : 2;
    }));
    ASSERT_GT(children.back(), 0);
  }
  ASSERT_EQ(worker.write({0, 64}), "");
  close(there[1]);
  for (const pid_t child : children) EXPECT_EQ(status_of(child), 0);
  EXPECT_EQ(worker.read_all(), "");
  take_back();
  EXPECT_LE(all_references(), 64u + 4 * 64u) << "those without a place stay";
}

}  // namespace
}  // namespace farheap::segment
