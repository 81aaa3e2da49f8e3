// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which block leaves first, under each policy: their order step by step, and what becomes of a hot set in a memory
// of blocks that is swept.
#include "pager/policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace farheap::pager {
namespace {

constexpr std::uint64_t kCapacityPages = 1 << 16;

// A page table whose blocks follow each other, and the policy under test.
class Blocks {
 protected:
  explicit Blocks(PolicyKind kind) : policy(kind, table) {}

  // A block of `pages` pages that is on no list yet.
  [[nodiscard]] BlockId make(std::uint32_t pages = 1) {
    const BlockId id = table.new_block(next_page_, pages);
    next_page_ += pages;
    return id;
  }
  BlockId enter(bool ghost = false, bool stream = false) {
    const BlockId id = make();
    policy.entered(id, ghost, stream);
    return id;
  }
  [[nodiscard]] std::vector<BlockId> enter_many(std::size_t count, bool ghost = false, bool stream = false) {
    std::vector<BlockId> ids;
    for (std::size_t i = 0; i < count; ++i) ids.push_back(enter(ghost, stream));
    return ids;
  }
  [[nodiscard]] std::vector<BlockId> take(std::size_t count, std::uint64_t memory_pages) {
    std::vector<BlockId> ids;
    for (std::size_t i = 0; i < count; ++i) ids.push_back(policy.take_victim(memory_pages));
    return ids;
  }
  [[nodiscard]] std::size_t count_in(Queue queue, const std::vector<BlockId>& ids) const {
    std::size_t count = 0;
    for (const BlockId id : ids) count += table.block(id).queue == queue;
    return count;
  }

  PageTable table = PageTable::make(kCapacityPages).value();
  Policy policy;

 private:
  PageNumber next_page_ = 0;
};

class PolicyTest : public ::testing::TestWithParam<PolicyKind>, protected Blocks {
 protected:
  PolicyTest() : Blocks(GetParam()) {}
};
class ClockTest : public ::testing::Test, protected Blocks {
 protected:
  ClockTest() : Blocks(PolicyKind::kClock) {}
};
class S3FifoTest : public ::testing::Test, protected Blocks {
 protected:
  S3FifoTest() : Blocks(PolicyKind::kS3Fifo) {}
};

// ---- all

TEST_P(PolicyTest, WhatIsLeftToAnOrderIsNotChosenUntilItIsTakenBack) {
  const std::vector<BlockId> ids = enter_many(8);
  for (const BlockId id : {ids[0], ids[2], ids[4]}) {
    policy.leave_to_order(id);
    policy.leave_to_order(id);
    EXPECT_TRUE(policy.may_take(id)) << "by the order";
  }
  EXPECT_EQ(policy.pages(), 8u);
  std::vector<BlockId> taken = take(5, 1000);
  std::ranges::sort(taken);
  EXPECT_EQ(taken, (std::vector<BlockId>{ids[1], ids[3], ids[5], ids[6], ids[7]}));
  EXPECT_EQ(policy.take_victim(1000), 0u);
  policy.remove(ids[4]);  // the order took it
  policy.take_back_from_order();
  EXPECT_EQ(take(3, 1000), (std::vector<BlockId>{ids[0], ids[2], 0}));
}

TEST_P(PolicyTest, NothingLeavesWhereNothingIs) {
  EXPECT_EQ(policy.take_victim(100), 0u);
  const BlockId only = enter();
  EXPECT_EQ(policy.take_victim(100), only);
  EXPECT_EQ(policy.take_victim(100), 0u);
  EXPECT_EQ(policy.pages(), 0u);
}

TEST_P(PolicyTest, KeptAndRefusedBlocksLeaveAfterAllOthers) {
  const auto ids = enter_many(6);
  policy.keep(ids[0], 1000);
  const BlockId refused = make();
  policy.refused(refused);
  const BlockId late = enter();
  EXPECT_EQ(take(8, 100), (std::vector{ids[1], ids[2], ids[3], ids[4], ids[5], late, ids[0], refused}));
}

TEST_P(PolicyTest, WhatIsKeptHasHalfOfMemoryAtTheMost) {
  const auto ids = enter_many(6);
  for (const BlockId id : ids) policy.keep(id, 8);
  EXPECT_EQ(policy.kept_pages(), 4u) << "with more, the rest stays as it was";
  EXPECT_EQ(take(3, 8), (std::vector{ids[4], ids[5], ids[0]})) << "kept ones leave when nothing else is left";
  policy.keep_to_share(4);  // memory is less
  EXPECT_EQ(policy.kept_pages(), 2u);
  EXPECT_EQ(take(4, 4), (std::vector<BlockId>{ids[1], ids[2], ids[3], 0}));
}

TEST_P(PolicyTest, WhatIsKeptNoMoreIsAsAllElse) {
  const auto ids = enter_many(3);
  policy.keep(ids[0], 100);
  policy.keep_no_more(ids[0]);
  policy.keep_no_more(ids[1]);  // nothing to take back
  EXPECT_EQ(policy.kept_pages(), 0u);
  EXPECT_TRUE(policy.may_take(ids[0]));
  auto left = take(3, 100);
  std::ranges::sort(left);
  EXPECT_EQ(left, ids);
}

TEST_P(PolicyTest, WhatTheProgramIsDoneWithLeavesNext) {
  const auto ids = enter_many(4);
  EXPECT_EQ(policy.take_done_with(), 0u);
  for (const BlockId id : {ids[3], ids[2]}) {
    table.block(id).leave_first = true;
    policy.leaves_next(id);
  }
  table.block(ids[2]).busy = true;
  EXPECT_EQ(policy.take_done_with(), 0u);
  table.block(ids[2]).busy = false;
  EXPECT_EQ(policy.take_done_with(), ids[2]);
  EXPECT_EQ(policy.take_done_with(), ids[3]);
  EXPECT_EQ(policy.take_done_with(), 0u);
  EXPECT_EQ(take(2, 100), (std::vector{ids[0], ids[1]}));
}

TEST_P(PolicyTest, BusyBlocksArePassedOverAndLeaveLater) {
  const auto ids = enter_many(3);
  policy.keep(ids[2], 1000);
  for (const BlockId id : ids) table.block(id).busy = true;
  EXPECT_EQ(policy.take_victim(100), 0u) << "a block left while its staging place was being read";
  table.block(ids[1]).busy = table.block(ids[2]).busy = false;
  EXPECT_EQ(policy.take_victim(100), ids[1]);
  table.block(ids[0]).busy = false;
  EXPECT_EQ(take(3, 100), (std::vector<BlockId>{ids[0], ids[2], 0}));
}

TEST_P(PolicyTest, PagesAreCountedWhereverTheBlockIs) {
  const BlockId fresh = make(8), streamed = make(16), proven = make(32), kept = make(64);
  policy.entered(fresh, false, false);
  policy.entered(streamed, false, true);
  policy.proven(proven);
  policy.entered(kept, true, false);
  policy.keep(kept, 1000);
  EXPECT_EQ(policy.pages(), 8u + 16 + 32 + 64);
  for (const BlockId id : {fresh, streamed, proven, kept}) {  // as when pages are discarded one by one
    table.block(id).pages -= 3;
    policy.shrink(id, 3);
  }
  EXPECT_EQ(policy.pages(), 8u + 16 + 32 + 64 - 12);
  policy.remove(streamed);
  policy.remove(streamed);  // it is on no list: nothing to do
  EXPECT_EQ(policy.pages(), 5u + 29 + 61);
  for (int i = 0; i < 3; ++i) EXPECT_NE(policy.take_victim(1000), 0u);
  EXPECT_EQ(policy.pages(), 0u);
}

TEST_P(PolicyTest, WhatIsTakenFromTheMiddleLeavesTheOrderWhole) {
  const auto ids = enter_many(5);
  policy.remove(ids[0]);
  policy.remove(ids[2]);
  policy.remove(ids[4]);
  const BlockId late = enter();
  EXPECT_EQ(take(4, 100), (std::vector<BlockId>{ids[1], ids[3], late, 0}));
}

TEST_P(PolicyTest, GhostsAreRememberedForAsManyPagesAsMemoryHolds) {
  EXPECT_FALSE(policy.is_ghost(0, 100)) << "what never left is no ghost";
  const std::uint32_t mine = policy.stamp();
  for (int left = 0; left < 100; ++left) {
    EXPECT_TRUE(policy.is_ghost(mine, 100)) << left;
    (void)policy.stamp();
  }
  EXPECT_FALSE(policy.is_ghost(mine, 100));
  EXPECT_TRUE(policy.is_ghost(mine, 101));
}

constexpr auto kind_name = [](const ::testing::TestParamInfo<PolicyKind>& one) {
  return one.param == PolicyKind::kClock ? "Clock" : one.param == PolicyKind::kPeriod ? "Period" : "S3Fifo";
};
INSTANTIATE_TEST_SUITE_P(Kinds, PolicyTest,
                         ::testing::Values(PolicyKind::kClock, PolicyKind::kPeriod, PolicyKind::kS3Fifo), kind_name);

// ---- clock

TEST_F(ClockTest, TheOldestLeavesFirstWhateverBroughtIt) {
  const std::vector<BlockId> ids{enter(), enter(true), enter(false, true), enter(true, true), enter()};
  EXPECT_EQ(take(5, 10), ids);
}

TEST_F(ClockTest, WhatWasTouchedInProbationGetsASecondChance) {
  const auto ids = enter_many(3);
  ASSERT_EQ(policy.take_victim(10), ids[0]);
  policy.proven(ids[0]);
  EXPECT_EQ(take(3, 10), (std::vector{ids[1], ids[2], ids[0]}));
}

// ---- s3fifo

TEST_F(S3FifoTest, NewBlocksLeaveBeforeProvenOnesUntilTheyAreATenth) {
  const BlockId proven = make();
  policy.proven(proven);
  const BlockId ghost = enter(true);
  const auto fresh = enter_many(12);
  EXPECT_EQ(take(2, 100), (std::vector{fresh[0], fresh[1]}));  // 12 of 100 are more than a tenth, then 11
  EXPECT_EQ(take(2, 100), (std::vector{proven, ghost}));       // 10 are not
  EXPECT_EQ(policy.take_victim(100), fresh[2]);                // and when all others are gone
}

TEST_F(S3FifoTest, StreamBlocksAreTheVictimsAsLongAsTheyAreMoreThanTheirShare) {
  const auto hot = enter_many(50, true);
  const auto streamed = enter_many(64, false, true);
  EXPECT_EQ(count_in(Queue::kMain, streamed), 4u) << "one in sixteen goes to the main list";
  EXPECT_EQ(count_in(Queue::kStreamOrHot, streamed), 60u);
  ASSERT_EQ(Policy::stream_share(100), 10u);
  const auto victims = take(53, 100);  // 50 of the stream's, and one in sixteen from elsewhere
  std::size_t of_hot = 0;
  for (const BlockId id : victims) of_hot += id <= hot.back();
  EXPECT_EQ(of_hot, 3u);
  EXPECT_EQ(count_in(Queue::kStreamOrHot, streamed), 10u);
  EXPECT_EQ(policy.take_victim(100), hot[3]) << "no more than its share: the others give";
  // When nothing else is there, the rest of the stream leaves, too.
  const auto rest = take(46 + 4 + 10, 100);
  EXPECT_EQ(policy.pages(), 0u);
  EXPECT_EQ(rest.back(), streamed.back() - 1) << "the last stays in the order in which it came";
}

// ---- a memory of blocks of one page, with probation as the pager has it

class Memory {
 public:
  Memory(PolicyKind kind, std::uint64_t pages)
      : policy_(kind, table_), probation_(table_, Queue::kProbation), pages_(pages) {}

  // True if the page was in memory.
  bool touch(PageNumber page, bool stream = false) {
    const PageState state = table_.state(page);
    if (state == PageState::kPresent) return true;
    if (state == PageState::kProbation) {
      const BlockId id = table_.tag(page);
      probation_.remove(id);
      const bool watches = policy_.watches(id);
      policy_.touched(page, pages_);
      policy_.proven(id, watches ? Policy::Proof::kWatched : Policy::Proof::kItself);
      ++rescued_;
      table_.set_state(page, PageState::kPresent);
      return true;
    }
    const bool ghost = policy_.is_ghost(table_.tag(page), pages_);
    while (policy_.pages() + probation_.pages() >= pages_) make_room();
    const BlockId id = table_.new_block(page, 1);
    table_.set_state(page, PageState::kPresent);
    table_.tag(page) = id;
    policy_.entered(id, ghost, stream);
    stream ? policy_.swept(page, pages_) : policy_.touched(page, pages_);
    return false;
  }
  std::uint64_t sweep(PageNumber first, std::uint64_t count, bool stream) {
    std::uint64_t found = 0;
    for (PageNumber page = first; page < first + count; ++page) found += touch(page, stream);
    return found;
  }
  [[nodiscard]] std::uint64_t rescued() const { return rescued_; }
  [[nodiscard]] std::uint64_t foreseen_percent() const { return policy_.foreseen_percent(); }
  [[nodiscard]] std::uint64_t in_memory(PageNumber first, std::uint64_t count) const {
    std::uint64_t found = 0;
    for (PageNumber page = first; page < first + count; ++page) {
      const PageState state = table_.state(page);
      found += state == PageState::kPresent || state == PageState::kProbation;
    }
    return found;
  }

 private:
  void make_room() {
    while (probation_.pages() <= pages_ / 20) {
      const BlockId id = policy_.take_victim(pages_);
      ASSERT_NE(id, 0u);
      table_.set_state(table_.block(id).first, PageState::kProbation);
      probation_.push_newest(id);
    }
    BlockId leaving = probation_.oldest();
    for (std::uint64_t most = probation_.pages() / 4; most > 0 && policy_.watches(leaving); --most) {
      probation_.remove(leaving);
      probation_.push_newest(leaving);
      leaving = probation_.oldest();
    }
    const PageNumber page = table_.block(leaving).first;
    probation_.remove(leaving);
    policy_.gone(table_.block(leaving));
    table_.free_block(leaving);
    table_.set_state(page, PageState::kStored);
    table_.tag(page) = policy_.stamp();
  }

  PageTable table_ = PageTable::make(kCapacityPages).value();
  Policy policy_;
  BlockList probation_;
  std::uint64_t pages_;
  std::uint64_t rescued_ = 0;  // touched in probation
};

constexpr std::uint64_t kPolicyMemory = 2000;
constexpr std::uint64_t kHot = 800;
constexpr PageNumber kCold = 10'000;

// Hot pages that prove themselves: touched again and again while other pages come and go.
void warm_up(Memory& memory) {
  for (int round = 0; round < 40; ++round) {
    memory.sweep(0, kHot, false);
    memory.sweep(30'000 + static_cast<PageNumber>(round) * 100, 100, false);
  }
}

TEST(PolicyInUse, AScanThatIsNoStreamLeavesTheHotSetUnderS3Fifo) {
  Memory s3fifo(PolicyKind::kS3Fifo, kPolicyMemory), clock(PolicyKind::kClock, kPolicyMemory);
  for (Memory* memory : {&s3fifo, &clock}) {
    warm_up(*memory);
    ASSERT_EQ(memory->in_memory(0, kHot), kHot);
    EXPECT_EQ(memory->sweep(kCold, 5 * kPolicyMemory, false), 0u);
  }
  EXPECT_EQ(s3fifo.in_memory(0, kHot), kHot) << "once proven, a page outlives what is touched but once";
  EXPECT_EQ(clock.in_memory(0, kHot), 0u) << "if clock does that too, this test tests nothing";
}

TEST(PolicyInUse, AStreamLeavesAlmostAllOfTheHotSet) {
  Memory memory(PolicyKind::kS3Fifo, kPolicyMemory);
  warm_up(memory);
  memory.sweep(kCold, kPolicyMemory, true);
  EXPECT_GE(memory.in_memory(0, kHot), kHot - kPolicyMemory / 16) << "a sixteenth of a stream may push others out";
}

TEST(PolicyInUse, ASweepLargerThanMemoryFindsAPartOfItWhenItComesRound) {
  constexpr std::uint64_t kSwept = kPolicyMemory * 3 / 2;
  Memory s3fifo(PolicyKind::kS3Fifo, kPolicyMemory), clock(PolicyKind::kClock, kPolicyMemory);
  std::uint64_t found = 0;
  for (Memory* memory : {&s3fifo, &clock}) memory->sweep(0, kSwept, false);  // first touches are not a stream's
  for (int round = 0; round < 30; ++round) {
    found = s3fifo.sweep(0, kSwept, true);
    EXPECT_EQ(clock.sweep(0, kSwept, true), 0u);
  }
  EXPECT_GT(found, kPolicyMemory / 2);
}

// Half of the touches go to kOften pages. Returns those that missed.
constexpr std::uint64_t kOften = 2 * kPolicyMemory / 50;
std::uint64_t touch_unevenly(Memory& memory, PageNumber first, int touches) {
  constexpr std::uint64_t kPages = 2 * kPolicyMemory;
  std::mt19937_64 random(1);
  std::uint64_t missed = 0;
  for (int i = 0; i < touches; ++i) {
    const std::uint64_t among = random() % 2 == 0 ? kOften : kPages;
    missed += !memory.touch(first + random() % among);
  }
  return missed;
}

TEST(PolicyInUse, WhatIsUsedOftenIsSeldomTakenOutUnderPeriod) {
  Memory period(PolicyKind::kPeriod, kPolicyMemory), clock(PolicyKind::kClock, kPolicyMemory);
  const std::uint64_t missed = touch_unevenly(period, 0, 200'000), by_clock = touch_unevenly(clock, 0, 200'000);
  EXPECT_LT(missed, by_clock);
  EXPECT_LT(period.rescued(), clock.rescued() * 4 / 5);
}

TEST(PolicyInUse, WhatWasUsedOftenLeavesWhenItIsUsedNoMoreUnderPeriod) {
  Memory period(PolicyKind::kPeriod, kPolicyMemory);
  (void)touch_unevenly(period, 0, 200'000);
  EXPECT_GT(period.in_memory(0, kOften), kOften * 9 / 10);
  (void)touch_unevenly(period, kCold, 200'000);
  EXPECT_LT(period.in_memory(0, 2 * kPolicyMemory), kPolicyMemory / 20);
}

// ---- period: memory and sweeps of some dozens of extents

constexpr std::uint64_t kLargeMemory = 40 * kExtentPages;
constexpr std::uint64_t kLargeSweep = 60 * kExtentPages;

// An oracle finds kLargeMemory pages of each round, as those that it does not keep are kLargeSweep - kLargeMemory.
TEST(PolicyInUse, ASweepThatComesBackFindsNearlyWhatAnOracleWouldUnderPeriod) {
  Memory period(PolicyKind::kPeriod, kLargeMemory), clock(PolicyKind::kClock, kLargeMemory);
  std::uint64_t found = 0;
  for (int round = 0; round < 12; ++round) {
    found = period.sweep(0, kLargeSweep, true);
    EXPECT_EQ(clock.sweep(0, kLargeSweep, true), 0u);
  }
  EXPECT_GT(found, kLargeMemory * 2 / 3);
}

class PeriodTest : public ::testing::Test, protected Blocks {
 protected:
  PeriodTest() : Blocks(PolicyKind::kPeriod) {}
  static constexpr std::uint64_t kPages = 1600;
  void leave(std::uint64_t pages) {
    for (std::uint64_t i = 0; i < pages; ++i) (void)policy.stamp();
  }
  // Pages may leave view before, to watch for the next sweep.
  BlockId take_extent() {
    for (;;) {
      const BlockId id = policy.take_victim(kPages);
      const Block& block = table.block(id);
      if (id == 0 || block.pages > 1) return id;
      table.set_state(block.first, PageState::kProbation);
    }
  }
};

// The time was 0 then, which meant "never seen" and became 1: the next sweep was 2^32 - 1 later.
TEST_F(PeriodTest, SweepsBeforeAnythingHasLeftMakeNoPeriod) {
  policy.swept(0, kPages);
  policy.swept(0, kPages);
  EXPECT_EQ(table.extent(0).period, 0u);
  leave(kPages / 2);
  policy.swept(0, kPages);
  EXPECT_EQ(table.extent(0).period, kPages / 2);
}

// A thirtieth of memory later a sweep's last plane touches the extent once more: that is no period of a thirtieth.
TEST_F(PeriodTest, ASecondLookOfTheSameSweepLeavesThePeriodAsItWas) {
  policy.swept(0, kPages);
  leave(kPages);
  policy.swept(0, kPages);
  ASSERT_EQ(table.extent(0).period, kPages);
  leave(kPages / 20);
  policy.swept(0, kPages);
  EXPECT_EQ(table.extent(0).period, kPages);
}

// A part of probation stays in it only to watch. Were it all of it, nothing would leave any more.
TEST_F(PeriodTest, APageWatchesAsLongAsMuchOfItsExtentIsInView) {
  policy.entered(make(kExtentPages), false, true);
  const BlockId all = 1;
  for (PageNumber page = 0; page < kExtentPages; ++page) {
    table.set_state(page, PageState::kPresent);
    table.tag(page) = all;
  }
  const BlockId part = policy.split_page(all, 0);
  EXPECT_FALSE(policy.watches(part));
  table.extent(0).watched = 1;
  EXPECT_TRUE(policy.watches(part));
  EXPECT_FALSE(policy.watches(all));
  table.block(part).leave_first = true;
  EXPECT_FALSE(policy.watches(part));
  table.block(part).leave_first = false;
  for (PageNumber page = kExtentPages / 8; page < kExtentPages; ++page) table.set_state(page, PageState::kStored);
  EXPECT_TRUE(policy.watches(part)) << "an eighth is";
  table.set_state(1, PageState::kStored);
  EXPECT_FALSE(policy.watches(part));
}

TEST_F(PeriodTest, WhatALoopNeedsLastLeavesFirst) {
  leave(10 * kPages);
  std::vector<BlockId> ids;
  for (PageNumber extent = 0; extent < 3; ++extent) {
    ids.push_back(make(511));
    (void)make(1);
    policy.entered(ids.back(), false, true);
    for (PageNumber page = extent * kExtentPages; page < extent * kExtentPages + 511; ++page) {
      table.set_state(page, PageState::kPresent);
      table.tag(page) = ids.back();
    }
  }
  // It begins in the second extent, as loops do that are said backward or for a part.
  policy.foresee(kExtentPages, 0, 0, 2000, kPages);
  policy.foresee(2 * kExtentPages, 500, 0, 2000, kPages);
  policy.foresee(0, 1000, 0, 2000, kPages);
  EXPECT_EQ(take_extent(), ids[0]);
  // It has come to the second extent, and gone on: that is needed after all others.
  policy.swept(kExtentPages, kPages);
  policy.passed(kExtentPages);
  EXPECT_EQ(take_extent(), ids[1]);
}

TEST_F(PeriodTest, ALoopThatDoesNotComeIsForgotten) {
  leave(10 * kPages);
  policy.entered(make(), false, true);
  table.set_state(0, PageState::kPresent);
  policy.foresee(0, 0, 0, kPages, kPages);
  EXPECT_EQ(table.extent(0).period, kPages);
  leave(2 * kPages);
  policy.entered(enter(), false, true);
  (void)policy.take_victim(kPages);
  EXPECT_EQ(table.extent(0).period, 0u);
}

TEST_F(PeriodTest, WhatWasSeenOfALoopCountsMoreThanAGuessAndLessThanItsOwnWord) {
  leave(kPages);
  policy.swept(0, kPages);
  leave(3000);
  policy.swept(0, kPages);
  policy.foresee(0, 0, 0, 7000, kPages);
  EXPECT_EQ(table.extent(0).period, 3000u);
  policy.foresee(0, 0, 5000, 7000, kPages);
  EXPECT_EQ(table.extent(0).period, 5000u);
}

TEST(PolicyInUse, VictimsAreForeseenWhereSweepsComeBackAndNotAtRandom) {
  Memory swept(PolicyKind::kPeriod, kLargeMemory), at_random(PolicyKind::kPeriod, kLargeMemory);
  for (int round = 0; round < 12; ++round) swept.sweep(0, kLargeSweep, true);
  EXPECT_GT(swept.foreseen_percent(), 80u);
  std::mt19937 random(11);
  for (std::uint64_t i = 0; i < 4 * kLargeSweep; ++i) at_random.touch(random() % kLargeSweep);
  EXPECT_EQ(at_random.foreseen_percent(), 0u);
  for (std::uint64_t i = 0; i < 4 * kLargeSweep; ++i) swept.touch(random() % kLargeSweep);
  EXPECT_LT(swept.foreseen_percent(), 10u) << "a pattern that ended";
}

// What was never seen again was taken to be needed after half a round of the list, as if it were in use: so it stayed,
// and what was swept again and again left instead, round after round.
TEST(PolicyInUse, WhatIsColdLeavesBeforeASweepThatWouldFit) {
  constexpr std::uint64_t kSweptAgain = kLargeMemory * 8 / 10, kUsedOnce = kLargeMemory * 8 / 10;
  Memory memory(PolicyKind::kPeriod, kLargeMemory);
  memory.sweep(0, kSweptAgain + kUsedOnce, true);
  for (int round = 0; round < 8; ++round) memory.sweep(0, kSweptAgain, true);
  std::uint64_t found = 0;
  for (int round = 0; round < 4; ++round) found += memory.sweep(0, kSweptAgain, true);
  EXPECT_GT(found, 4 * kSweptAgain * 99 / 100);
  EXPECT_LT(memory.in_memory(kSweptAgain, kUsedOnce), kLargeMemory * 22 / 100);
}

TEST(PolicyInUse, ASweepThatEndedIsForgottenUnderPeriod) {
  Memory memory(PolicyKind::kPeriod, kLargeMemory);
  for (int round = 0; round < 12; ++round) memory.sweep(0, kLargeSweep, true);
  ASSERT_GT(memory.in_memory(0, kLargeSweep), kLargeMemory / 2);
  constexpr PageNumber kElsewhere = 80 * kExtentPages;
  constexpr std::uint64_t kHotNow = kLargeMemory * 9 / 10;
  for (int round = 0; round < 6; ++round) memory.sweep(kElsewhere, kHotNow, false);
  EXPECT_GT(memory.in_memory(kElsewhere, kHotNow), kHotNow * 9 / 10);
}

TEST(PolicyInUse, PagesAtRandomAreFoundAsOftenAsByClockUnderPeriod) {
  Memory period(PolicyKind::kPeriod, kPolicyMemory), clock(PolicyKind::kClock, kPolicyMemory);
  std::mt19937 random(7);
  std::uint64_t found = 0, by_clock = 0;
  for (int i = 0; i < 50'000; ++i) {
    const PageNumber page = random() % (kPolicyMemory * 3 / 2);
    found += period.touch(page);
    by_clock += clock.touch(page);
  }
  EXPECT_NEAR(static_cast<double>(found), static_cast<double>(by_clock), 0.01 * static_cast<double>(by_clock));
}

}  // namespace
}  // namespace farheap::pager
