// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/tree_budget.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <random>

#include "base/units.hpp"

namespace farheap::pager {
namespace {

using base::kMiB;

// The other process of the run is this test's parent: all that counts of it is that it lives.
class TreeBudgetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    run_page_->budget_bytes.store(1024 * kMiB);
    other_ = &run_page_->claim(getppid());
    budget_ = std::make_unique<TreeBudget>(*run_page_);
  }
  std::unique_ptr<base::RunPage> run_page_ = std::make_unique<base::RunPage>();
  base::RunSlot* other_ = nullptr;
  std::unique_ptr<TreeBudget> budget_;
};

TEST_F(TreeBudgetTest, WhatWasPromisedToAnotherIsNotPromisedAgain) {
  EXPECT_TRUE(budget_->promise(600 * kMiB));
  other_->promised_bytes.store(600 * kMiB);  // it has not touched any of it
  EXPECT_FALSE(budget_->promise(600 * kMiB));
  other_->promised_bytes.store(0);
  other_->bytes.store(600 * kMiB);
  EXPECT_FALSE(budget_->promise(600 * kMiB)) << "what is used counts, too";
  other_->bytes.store(100 * kMiB);
  EXPECT_TRUE(budget_->promise(600 * kMiB));
}

TEST_F(TreeBudgetTest, AProcessThatPagesIsPromisedOneStep) {
  ASSERT_TRUE(budget_->promise(600 * kMiB));
  const base::RunSlot& own = run_page_->claim(getpid());
  EXPECT_EQ(own.promised_bytes.load(), 0u) << "claimed anew, as after an exec";
  ASSERT_TRUE(budget_->promise(600 * kMiB));
  EXPECT_GE(own.promised_bytes.load(), 600 * kMiB);
  (void)budget_->page_limit(0, 0);
  EXPECT_LT(own.promised_bytes.load(), 100 * kMiB) << "what it holds and a step";
}

TEST_F(TreeBudgetTest, TheDeadHaveNothing) {
  other_->holder.store({0x3ffffffe, run_page_->pid_namespace});  // no process has this number
  other_->promised_bytes.store(1000 * kMiB);
  EXPECT_TRUE(budget_->promise(600 * kMiB));
}

TEST_F(TreeBudgetTest, AForkThatFitsOnlyOnceIsSeen) {
  EXPECT_TRUE(budget_->fits_twice(400 * kMiB));
  EXPECT_FALSE(budget_->fits_twice(600 * kMiB));
  other_->bytes.store(300 * kMiB);
  EXPECT_FALSE(budget_->fits_twice(400 * kMiB));
}

TEST_F(TreeBudgetTest, AChildToComeHasHalfOfTheRoom) {
  const std::uint64_t pages = 4 * 1024 * kMiB / base::kPageBytes;
  const auto alone = budget_->page_limit(0, pages);
  budget_->make_room_for_child(true);
  const auto half = budget_->page_limit(0, pages);
  EXPECT_NEAR(static_cast<double>(half), static_cast<double>(alone) / 2, static_cast<double>(alone) / 16);
}

TEST_F(TreeBudgetTest, AChildCountsBeforeItIsBornAndNotForEver) {
  ASSERT_TRUE(budget_->promise(200 * kMiB));
  budget_->expect_child();
  EXPECT_GE(run_page_->others(*other_).promised_bytes, 400 * kMiB);
  budget_->forked();
  EXPECT_GE(run_page_->others(*other_).promised_bytes, 400 * kMiB);
  for (auto& slot : run_page_->slots) {
    if (slot.pid() == -getpid()) slot.born_by_ns.store(1);  // long ago: the fork failed
  }
  EXPECT_LT(run_page_->others(*other_).promised_bytes, 400 * kMiB);
}

// A fork may wait long for what is in flight; when that took half a second the child had lost its room.
TEST_F(TreeBudgetTest, AChildIsExpectedHoweverLongTheForkTakes) {
  ASSERT_TRUE(budget_->promise(200 * kMiB));
  budget_->expect_child();
  const auto& child = *std::ranges::find_if(run_page_->slots, [](auto& slot) { return slot.pid() == -getpid(); });
  EXPECT_EQ(child.born_by_ns.load(), 0) << "the time runs from the end of the fork";
  budget_->forked();
  EXPECT_NE(child.born_by_ns.load(), 0);
}

TEST_F(TreeBudgetTest, WhoDiedInAForkExpectsNoChild) {
  const pid_t dead = fork();
  if (dead == 0) _exit(0);
  ASSERT_EQ(waitpid(dead, nullptr, 0), dead);
  const auto before = run_page_->others(*other_).promised_bytes;
  (void)run_page_->claim_for_child(dead, 200 * kMiB, kMiB);
  EXPECT_EQ(run_page_->others(*other_).promised_bytes, before);
}

TEST_F(TreeBudgetTest, AForkWaitsForOthersThatHaveMoreThanTheirShare) {
  (void)budget_->page_limit(400 * kMiB / base::kPageBytes, 0);
  std::uint64_t held = 0;
  EXPECT_FALSE(budget_->others_give_way(held)) << "it fits twice";
  other_->bytes.store(600 * kMiB);
  EXPECT_FALSE(budget_->others_give_way(held)) << "a program that does not page gives nothing";
  other_->watched.store(true);
  EXPECT_TRUE(budget_->others_give_way(held));
  EXPECT_EQ(held, 600 * kMiB);
  other_->bytes.store(300 * kMiB);
  EXPECT_FALSE(budget_->others_give_way(held)) << "that is its share";
}

TEST_F(TreeBudgetTest, ALimitRisesByWhatTheIdleLend) {
  constexpr std::uint64_t kMany = 4096 * kMiB / base::kPageBytes;
  base::RunSlot& idle = run_page_->claim(1);
  for (base::RunSlot* slot : {other_, &idle}) slot->promised_bytes.store(400 * kMiB);
  const auto limit_if = [&](std::uint64_t others_unused, std::uint64_t idles_unused) {
    other_->unused_bytes.store(others_unused);
    idle.unused_bytes.store(idles_unused);
    run_page_->looked_ns.store(std::chrono::nanoseconds(base::Clock::now().time_since_epoch()).count());
    return static_cast<double>(budget_->page_limit(kMany / 64, kMany) * base::kPageBytes);
  };
  const double alone = limit_if(0, 0);
  EXPECT_NEAR(limit_if(300 * kMiB, 0), alone, kMiB) << "the largest is not lent";
  EXPECT_NEAR(limit_if(300 * kMiB, 200 * kMiB), alone + 200.0 * kMiB, kMiB);
  EXPECT_NEAR(limit_if(3000 * kMiB, 3000 * kMiB), alone + 400.0 * kMiB, kMiB) << "no more than was promised";
  std::uint64_t held = 0;
  EXPECT_FALSE(budget_->others_give_way(held));
  EXPECT_EQ(held, 400 * kMiB);
}

TEST_F(TreeBudgetTest, WhoHasMoreThanItsShareGivesRoomToWhoIsShort) {
  const std::uint64_t resident = 900 * kMiB / base::kPageBytes;
  other_->watched.store(true);
  other_->bytes.store(100 * kMiB);
  EXPECT_GE(budget_->page_limit(resident, 0), resident);
  other_->need.store(base::RoomNeed::kShare);
  EXPECT_LT(budget_->page_limit(resident, 0), resident);
  EXPECT_LE(budget_->page_limit(resident, 1000), resident) << "and does not take it back at once";
}

// A parent that waited for its children kept its whole share of the budget, although they read most of what they
// touched from the store.
TEST_F(TreeBudgetTest, WhoRestsGivesOfItsShareToWhoWantsMore) {
  const std::uint64_t resident = 300 * kMiB / base::kPageBytes;
  base::RunSlot& own = run_page_->claim(getpid());
  other_->watched.store(true);
  other_->bytes.store(700 * kMiB);
  other_->need.store(base::RoomNeed::kMore);
  EXPECT_GE(budget_->page_limit(resident, 0), resident) << "it works, and has less than its share";
  own.unrest.store(base::Unrest::kRests);
  const std::uint64_t less = budget_->page_limit(resident, 0);
  EXPECT_LT(less, resident);
  EXPECT_GE(less, resident * 9 / 10) << "in steps";
  EXPECT_EQ(own.need.load(), base::RoomNeed::kNone) << "and wants nothing itself";
}

TEST_F(TreeBudgetTest, WhoRestsKeepsWhatNobodyWants) {
  const std::uint64_t resident = 300 * kMiB / base::kPageBytes;
  base::RunSlot& own = run_page_->claim(getpid());
  other_->watched.store(true);
  other_->bytes.store(700 * kMiB);
  own.unrest.store(base::Unrest::kRests);
  EXPECT_GE(budget_->page_limit(resident, 0), resident);
}

// A client that asked for a page now and then kept all that it had while its server waited for pages.
TEST_F(TreeBudgetTest, WhoIsCalmGivesOfItsShareToWhoThrashes) {
  const std::uint64_t resident = 300 * kMiB / base::kPageBytes;
  base::RunSlot& own = run_page_->claim(getpid());
  own.unrest.store(base::Unrest::kIsCalm);
  other_->watched.store(true);
  other_->bytes.store(700 * kMiB);
  other_->need.store(base::RoomNeed::kMore);
  EXPECT_GE(budget_->page_limit(resident, 0), resident) << "the other one works";
  other_->unrest.store(base::Unrest::kThrashes);
  const std::uint64_t less = budget_->page_limit(resident, 1000);
  EXPECT_LT(less, resident);
  EXPECT_GE(less, resident * 9 / 10) << "in steps";
  EXPECT_EQ(own.need.load(), base::RoomNeed::kNone) << "and wants nothing itself";
  EXPECT_EQ(budget_->page_limit(resident, 1000), resident) << "and not the next one at once";
  own.unrest.store(base::Unrest::kWorks);
  EXPECT_GE(budget_->page_limit(resident, 0), resident);
}

TEST_F(TreeBudgetTest, WhoRestsKeepsLessThanWhoWorks) {
  base::RunSlot& own = run_page_->claim(getpid());
  other_->watched.store(true);
  other_->bytes.store(1024 * kMiB);
  other_->need.store(base::RoomNeed::kMore);
  EXPECT_EQ(budget_->page_limit(512, 2048), 1024u) << "all is taken";
  own.unrest.store(base::Unrest::kRests);
  EXPECT_EQ(budget_->page_limit(512, 2048), 256u);
}

TEST_F(TreeBudgetTest, WhoWakesWantsItsShare) {
  base::RunSlot& own = run_page_->claim(getpid());
  other_->watched.store(true);
  other_->bytes.store(1000 * kMiB);
  own.unrest.store(base::Unrest::kRests);
  (void)budget_->page_limit(1024, 1024 * kMiB / base::kPageBytes);
  EXPECT_EQ(own.need.load(), base::RoomNeed::kNone);
  own.unrest.store(base::Unrest::kWorks);
  (void)budget_->page_limit(1024, 1024 * kMiB / base::kPageBytes);
  EXPECT_EQ(own.need.load(), base::RoomNeed::kShare);
}

// Half of the budget is no share of two where a third process, that does not page, has most of it.
TEST_F(TreeBudgetTest, WhatPlainProgramsHaveIsNobodysToShare) {
  base::RunSlot& own = run_page_->claim(getpid());
  other_->bytes.store(900 * kMiB);
  (void)budget_->page_limit(100 * kMiB / base::kPageBytes, 100 * kMiB / base::kPageBytes);
  EXPECT_EQ(own.need.load(), base::RoomNeed::kMore) << "the rest is its own already";
}

// Three children that each needed two thirds of the budget had a third each, and missed at every step.
TEST_F(TreeBudgetTest, WhoseTurnItIsGetsTheShareOfAllThatThrash) {
  constexpr std::uint64_t kMore = 100 * kMiB / base::kPageBytes;
  const std::uint64_t resident = 500 * kMiB / base::kPageBytes;
  base::RunSlot& own = run_page_->claim(getpid());
  own.watched.store(1);
  own.unrest.store(base::Unrest::kThrashes);
  other_->watched.store(true);
  other_->bytes.store(500 * kMiB);
  other_->need.store(base::RoomNeed::kShare);
  other_->unrest.store(base::Unrest::kWorks);
  EXPECT_GE(budget_->page_limit(resident, 0), resident) << "no more than its share";
  other_->unrest.store(base::Unrest::kThrashes);
  (void)budget_->page_limit(resident, 0);
  const auto give_turn = [&](const base::RunSlot& slot) {
    const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(base::Clock::now().time_since_epoch());
    run_page_->turn.store((run_page_->number_of(slot) + 1) << 48 | static_cast<std::uint64_t>(now.count()));
  };
  give_turn(*other_);
  EXPECT_LE(budget_->page_limit(resident, kMore), resident) << "the other's turn";
  EXPECT_EQ(own.need.load(), base::RoomNeed::kMore);
  give_turn(own);
  other_->need.store(base::RoomNeed::kMore);
  EXPECT_GE(budget_->page_limit(resident, kMore), resident);
  EXPECT_EQ(own.need.load(), base::RoomNeed::kShare) << "all that the other has is its to ask for";
  own.unrest.store(base::Unrest::kIsCalm);
  EXPECT_GE(budget_->page_limit(resident, kMore), resident) << "it has what it needs, and its turn goes on";
  EXPECT_GE(budget_->page_limit(resident, kMore), resident);
}

// What it says of itself comes from the faults that were counted.
class FaultsOfTreeBudgetTest : public TreeBudgetTest {
 protected:
  void SetUp() override {
    TreeBudgetTest::SetUp();
    heat_ = &budget_->start_heat();
    own_ = &run_page_->claim(getpid());
    other_->watched.store(true);
  }
  // Looks until it says so, or for much longer than that takes.
  bool says(base::Unrest wanted) {
    const auto until = base::Clock::now() + std::chrono::seconds(20);
    while (own_->unrest.load() != wanted && base::Clock::now() < until) (void)budget_->page_limit(1024, 0);
    return own_->unrest.load() == wanted;
  }
  base::HeatTable* heat_ = nullptr;
  base::RunSlot* own_ = nullptr;
};

TEST_F(FaultsOfTreeBudgetTest, WhoDoesNotFaultRestsUntilItDoes) {
  EXPECT_TRUE(says(base::Unrest::kRests));
  for (const auto kind : {base::Heat::kFresh, base::Heat::kProbation, base::Heat::kStore, base::Heat::kWaited}) {
    heat_->count(0, kind, 1);
    EXPECT_TRUE(says(base::Unrest::kIsCalm)) << "it did not wait";
    EXPECT_TRUE(says(base::Unrest::kRests));
  }
}

TEST_F(FaultsOfTreeBudgetTest, WhoAsksForPagesAndHardlyWaitsIsCalm) {
  const auto until = base::Clock::now() + std::chrono::seconds(20);
  while (own_->unrest.load() != base::Unrest::kIsCalm && base::Clock::now() < until) {
    heat_->count(0, base::Heat::kStore, 1);
    (void)budget_->page_limit(1024, 0);
  }
  EXPECT_EQ(own_->unrest.load(), base::Unrest::kIsCalm);
}

TEST_F(FaultsOfTreeBudgetTest, WhoWaitsForPagesThrashes) {
  heat_->count(0, base::Heat::kStallNs, 3'600'000'000'000);
  const auto until = base::Clock::now() + std::chrono::seconds(20);
  while (own_->unrest.load() != base::Unrest::kThrashes && base::Clock::now() < until) {
    heat_->count(0, base::Heat::kStore, 1);
    (void)budget_->page_limit(1024, 0);
  }
  EXPECT_EQ(own_->unrest.load(), base::Unrest::kThrashes);
}

// It lost its turn as soon as it had what it needed: then it does not fault.
TEST_F(FaultsOfTreeBudgetTest, WhoWorksInItsTurnDoesNotRest) {
  own_->watched.store(1);
  other_->unrest.store(base::Unrest::kThrashes);
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(base::Clock::now().time_since_epoch());
  run_page_->turn.store((run_page_->number_of(*own_) + 1) << 48 | static_cast<std::uint64_t>(now.count()));
  const auto until = base::Clock::now() + Pressure::kRest + 3 * Pressure::kLookEvery;
  while (base::Clock::now() < until) (void)budget_->page_limit(1024, 0);
  EXPECT_NE(own_->unrest.load(), base::Unrest::kRests);
}

// Two processes that looked at the same moment were both given the room that was left.
class SharedBudgetTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kBudget = 512 * kMiB;
  struct Shared {
    base::RunPage run_page;
    std::atomic<std::uint64_t> held_pages{0}, most_pages{0};
    std::atomic<int> registered{0};
  };
  static constexpr int kProcesses = 4;

  void SetUp() override {
    void* at = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(at, MAP_FAILED);
    shared_ = new (at) Shared;
    shared_->run_page.budget_bytes.store(kBudget);
  }
  void TearDown() override { munmap(shared_, sizeof(Shared)); }

  // Takes what it is allowed, gives some back, and shrinks when it is told to.
  void take_and_give(unsigned seed) {
    TreeBudget budget(shared_->run_page);
    // A process that comes when all is taken gets the least that it can work with, beyond the budget. Here all are
    // there before anything is taken.
    (void)budget.page_limit(0, 0);
    ++shared_->registered;
    while (shared_->registered.load() < kProcesses) sched_yield();
    std::mt19937 rng(seed);
    std::uint64_t held = 0;
    for (int i = 0; i < 3000; ++i) {
      const std::uint64_t limit = budget.page_limit(held, rng() % 4096);
      if (limit >= held) {
        const std::uint64_t more = rng() % (limit - held + 1);
        const std::uint64_t now = shared_->held_pages.fetch_add(more) + more;
        held += more;
        std::uint64_t most = shared_->most_pages.load();
        while (now > most && !shared_->most_pages.compare_exchange_weak(most, now)) {
        }
      }
      const std::uint64_t less = limit < held ? held - limit : rng() % 8 == 0 ? rng() % (held + 1) : 0;
      shared_->held_pages.fetch_sub(less);
      held -= less;
    }
    shared_->held_pages.fetch_sub(held);
  }
  Shared* shared_ = nullptr;
};

TEST_F(SharedBudgetTest, NoRoomIsGivenTwice) {
  for (unsigned seed = 1; seed <= kProcesses; ++seed) {
    if (fork() == 0) {
      take_and_give(seed);
      _exit(0);
    }
  }
  int status = 0;
  while (wait(&status) > 0) EXPECT_EQ(status, 0);
  EXPECT_LE(shared_->most_pages.load() * base::kPageBytes, kBudget);
  EXPECT_GE(shared_->most_pages.load() * base::kPageBytes, kBudget / 2) << "it was not needed: this tests nothing";
}

// A child that had its process number, but had not looked at its memory yet, was taken for another program: the next
// fork made no room, and the family went over its budget on a busy machine.
TEST_F(SharedBudgetTest, AChildThatIsJustBornIsNoProgramOfItsOwn) {
  TreeBudget budget(shared_->run_page);
  budget.expect_child();
  EXPECT_TRUE(budget.next_child_may_stay()) << "not born";
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  base::RunSlot* const expected =
      std::ranges::find(shared_->run_page.slots, -getpid(), [](const base::RunSlot& slot) { return slot.pid(); });
  ASSERT_NE(expected, std::end(shared_->run_page.slots));
  (void)shared_->run_page.be_born(*expected, getpid(), child);
  EXPECT_TRUE(budget.next_child_may_stay()) << "born";
  expected->inherited_bytes = 0;  // as after an exec
  EXPECT_FALSE(budget.next_child_may_stay()) << "another program";
  kill(child, SIGKILL);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace farheap::pager
