// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/turns.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <memory>
#include <vector>

#include "base/units.hpp"

namespace farheap::pager {
namespace {

using base::Unrest;
using std::chrono::milliseconds;

// The run has this process and two children that wait for their end.
class TurnsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    run_page_->budget_bytes.store(512 * base::kMiB);
    for (pid_t& child : children_) {
      child = fork();
      ASSERT_GE(child, 0);
      if (child != 0) continue;
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) pause();
    }
    for (const int pid : {getpid(), children_[0], children_[1]}) slots_.push_back(&run_page_->claim(pid));
    for (base::RunSlot* slot : slots_) slot->watched.store(1), slot->unrest.store(Unrest::kThrashes);
  }
  void TearDown() override {
    for (const pid_t child : children_) {
      if (child <= 0) continue;
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }
  Turn ask(std::size_t who) { return take_turns(*run_page_, *slots_[who], others_, now_); }
  std::array<pid_t, 2> children_{};
  std::unique_ptr<base::RunPage> run_page_ = std::make_unique<base::RunPage>();
  std::vector<base::RunSlot*> slots_;
  std::uint64_t others_ = 2;  // that thrash
  base::Clock::time_point now_ = base::Clock::now();
  const milliseconds turn_ = turn_length(512 * base::kMiB);
};

TEST_F(TurnsTest, OneOfThoseThatThrashHasTheTurn) {
  int own = 0, anothers = 0;
  for (int round = 0; round < 2; ++round) {
    for (std::size_t who = 0; who < slots_.size(); ++who) (ask(who) == Turn::kOwn ? own : anothers)++;
  }
  // Who gives the turn to the next learns of it then; that one when it asks.
  EXPECT_EQ(own, 2);
  EXPECT_EQ(anothers, 4);
}

TEST_F(TurnsTest, EachHasATurnInTurn) {
  std::vector<std::size_t> had;
  for (int turn = 0; turn < 6; ++turn, now_ += turn_) {
    for (std::size_t who = 0; who < slots_.size(); ++who) (void)ask(who);
    for (std::size_t who = 0; who < slots_.size(); ++who) {
      if (ask(who) == Turn::kOwn) had.push_back(who);
    }
  }
  ASSERT_EQ(had.size(), 6U);
  EXPECT_NE(had[0], had[1]);
  EXPECT_NE(had[1], had[2]);
  EXPECT_NE(had[0], had[2]);
  EXPECT_EQ(had[0], had[3]);
}

TEST_F(TurnsTest, NobodyTakesTurnsAlone) {
  others_ = 0;
  EXPECT_EQ(ask(0), Turn::kNone);
  slots_[0]->unrest.store(Unrest::kWorks);
  others_ = 2;
  EXPECT_EQ(ask(0), Turn::kNone) << "it gets on";
}

TEST_F(TurnsTest, WhoHasTheTurnKeepsItWhenItGetsOn) {
  while (ask(0) != Turn::kOwn) now_ += turn_;
  slots_[0]->unrest.store(Unrest::kWorks);
  EXPECT_EQ(ask(0), Turn::kOwn) << "that is what it has the turn for";
  EXPECT_EQ(ask(1), Turn::kAnothers);
}

TEST_F(TurnsTest, ATurnEndsWithTheProcessOrWhenItRests) {
  while (ask(0) != Turn::kOwn) now_ += turn_;
  slots_[0]->unrest.store(Unrest::kRests);
  EXPECT_NE(ask(0), Turn::kOwn);
  (void)ask(1);
  while (ask(2) != Turn::kOwn) now_ += turn_;
  slots_[2]->holder.store({0x3ffffffe, run_page_->pid_namespace});  // no process has this number
  EXPECT_EQ(ask(1), Turn::kOwn);
}

TEST_F(TurnsTest, WhoGetsOnIsLeftAloneByTheTurnsOfOthers) {
  while (ask(0) != Turn::kOwn) now_ += turn_;
  slots_[1]->unrest.store(Unrest::kWorks);
  EXPECT_EQ(ask(1), Turn::kNone);
}

// Others may write anything to the page.
TEST_F(TurnsTest, NonsenseInThePageIsNobodysTurn) {
  run_page_->turn.store(~std::uint64_t{0});
  EXPECT_NE(ask(0), Turn::kNone) << "there is a turn";
  EXPECT_LT((run_page_->turn.load() >> 48) - 1, base::RunPage::kSlots);
}

TEST_F(TurnsTest, ATurnIsNoLongerThanPeopleWait) {
  EXPECT_LE(turn_length(std::uint64_t{1} << 40), milliseconds(10'000));
  EXPECT_GE(turn_length(0), milliseconds(1000));
}

}  // namespace
}  // namespace farheap::pager
