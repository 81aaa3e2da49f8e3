// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/read_ahead.hpp"

#include <gtest/gtest.h>

namespace farheap::pager {
namespace {

using std::chrono::microseconds;

class Plenty final : public Budget {
 public:
  std::uint64_t page_limit(std::uint64_t, std::uint64_t) override { return 1 << 20; }
};

class Nothing final : public Backing {
 public:
  Status read(std::span<const Read>) override { return {}; }
  Status write(std::span<const Write>) override { return {}; }
  void forget(PageRun) override {}
};

class ReadAheadTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kPages = 1 << 16;
  void store(PageRun run) {
    for (std::uint32_t i = 0; i < run.count; ++i) table_.set_state(run.first + i, PageState::kStored);
  }
  // Touches these blocks, one behind the other.
  void keep_to(std::uint32_t first, std::uint32_t end) {
    for (std::uint32_t block = first; block < end; ++block) {
      (void)read_ahead_.notice(PageNumber{block} * PageOrder::kBlockPages);
    }
  }

  Plenty budget_;
  Nothing backing_;
  PageTable table_ = PageTable::make(kPages).value();
  std::function<void(const Error&)> lost_;
  Earlier earlier_{table_, backing_, lost_, false};
  Policy policy_{PolicyKind::kPeriod, table_};
  Room room_{budget_};
  Evictors evictors_{1, room_};
  base::RunCounters counters_;
  ReadAhead read_ahead_{
      table_, earlier_, policy_, room_, evictors_, counters_, {.pages = 1024, .block_max_pages = 512, .readers = 2}};
};

TEST_F(ReadAheadTest, WhatIsAskedForIsAnnouncedUntilItIsNoMore) {
  read_ahead_.request({{100, 30}});
  read_ahead_.request({{200, 20}});
  EXPECT_EQ(room_.announced(), 50u);
  const ReadAhead::Request first = read_ahead_.begin();
  EXPECT_EQ(first.run.first, 100u);   // in their order
  EXPECT_EQ(room_.announced(), 50u);  // it is not there yet
  read_ahead_.end({}, 0);
}

TEST_F(ReadAheadTest, WhatIsGivenUpForNewerOnesIsNotAnnouncedAnyMore) {
  for (PageNumber i = 0; i < 1000; ++i) read_ahead_.request({{i * 10, 10}});
  EXPECT_LT(read_ahead_.requests(), 1000u);
  EXPECT_EQ(room_.announced(), read_ahead_.requests() * 10);
  const PageNumber oldest = 1000 - read_ahead_.requests();
  EXPECT_EQ(read_ahead_.begin().run.first, oldest * 10);
}

TEST_F(ReadAheadTest, ASecondReaderIsOfUseWhereReadingTakesLongerThanShowing) {
  read_ahead_.request({{0, 10}});
  read_ahead_.request({{10, 10}});
  (void)read_ahead_.begin();
  EXPECT_FALSE(read_ahead_.has_work());
  read_ahead_.learn(10, microseconds(900), microseconds(100));
  EXPECT_TRUE(read_ahead_.has_work());
  read_ahead_.learn(10, microseconds(0), microseconds(10'000));
  EXPECT_FALSE(read_ahead_.has_work());
  read_ahead_.end({}, 0);
  EXPECT_TRUE(read_ahead_.has_work());
}

TEST_F(ReadAheadTest, AStreamsWindowIsWhatIsStoredAndNotAskedForYet) {
  store({1000, 600});
  for (PageNumber page = 996; page < 1000; ++page) (void)read_ahead_.notice(page);
  read_ahead_.plan(1000, 100, false);
  ASSERT_EQ(read_ahead_.requests(), 1u);
  const ReadAhead::Request first = read_ahead_.begin();
  EXPECT_EQ(first.run.first, 1000u);
  EXPECT_EQ(first.run.count, 100u);
  EXPECT_TRUE(first.stream);
  read_ahead_.end({}, 0);
  read_ahead_.request(first);  // asked for, and not carried out
  read_ahead_.plan(1000, 100, false);
  ASSERT_EQ(read_ahead_.requests(), 2u);
  (void)read_ahead_.begin();
  read_ahead_.end({}, 0);
  EXPECT_EQ(read_ahead_.begin().run.first, 1100u);
}

TEST_F(ReadAheadTest, NothingIsPlannedBeyondTheLoop) {
  store({1000, 600});
  read_ahead_.loop_begins(1000, 1050, false);
  ASSERT_EQ(read_ahead_.requests(), 1u);
  const ReadAhead::Request only = read_ahead_.begin();
  EXPECT_EQ(only.run.first, 1000u);
  EXPECT_EQ(only.run.count, 50u);
}

TEST_F(ReadAheadTest, AForkedChildHasNoReadersAndNoRequests) {
  read_ahead_.request({{0, 10}});
  read_ahead_.request({{10, 10}});
  (void)read_ahead_.begin();
  room_.forget_threads();
  read_ahead_.forget_requests();
  EXPECT_FALSE(read_ahead_.has_work());
  read_ahead_.request({{20, 10}});
  EXPECT_TRUE(read_ahead_.has_work());  // nobody is at work
  EXPECT_EQ(room_.announced(), 10u);
}

TEST_F(ReadAheadTest, WhatIsNeededComesPieceByPieceAfterWhatIsAskedFor) {
  read_ahead_.need(1000, 3000);
  read_ahead_.need(3000, 3100);  // goes on
  read_ahead_.need(10, 20);
  EXPECT_EQ(read_ahead_.needed_pages(), 2110u);
  EXPECT_EQ(room_.announced(), 2048u) << "room is made for a few pieces";
  read_ahead_.request({{100, 30}});
  EXPECT_EQ(read_ahead_.begin().run.first, 100u);
  read_ahead_.end({}, 0);
  room_.no_longer_announced(30);
  std::vector<std::pair<PageNumber, std::uint32_t>> pieces;
  while (read_ahead_.has_work()) {
    const ReadAhead::Request piece = read_ahead_.begin();
    pieces.emplace_back(piece.run.first, piece.run.count);
    room_.no_longer_announced(piece.run.count);  // as whoever carries it out
    read_ahead_.end(piece, 0);
  }
  EXPECT_EQ(pieces, (std::vector<std::pair<PageNumber, std::uint32_t>>{
                        {1000, 24}, {1024, 512}, {1536, 512}, {2048, 512}, {2560, 512}, {3072, 28}, {10, 10}}));
  EXPECT_EQ(room_.announced(), 0u);
}

TEST_F(ReadAheadTest, NoMoreThanThreeQuartersOfMemoryAreNeededAtOnce) {
  const PageNumber most = room_.limit() / 4 * 3;
  read_ahead_.need(0, most - 5);
  read_ahead_.need(most + 100, most + 200);
  EXPECT_EQ(read_ahead_.needed_pages(), most);
  read_ahead_.need(0, 10);
  EXPECT_EQ(read_ahead_.needed_pages(), most);
  read_ahead_.forget_requests();
  EXPECT_FALSE(read_ahead_.has_work());
}

// ---- an order that is expected

constexpr std::uint32_t kPagesOfBlock = PageOrder::kBlockPages;

// Blocks 0 to 19 once, and the first 50 again and again.
std::shared_ptr<const PageOrder> round_of_blocks() {
  auto order = std::make_shared<PageOrder>(16);
  for (std::uint32_t i = 0; i < 70; ++i) {
    order->add_visit({.block = i < 20 ? i : i - 20, .first = i * kPagesOfBlock, .last = (i + 1) * kPagesOfBlock - 1});
  }
  order->finish(20, PageOrder::Moment{50} * kPagesOfBlock);
  return order;
}

TEST_F(ReadAheadTest, TouchesAreCountedAsExpectedOrNot) {
  (void)read_ahead_.notice(0);
  read_ahead_.touched_fresh(1);
  EXPECT_EQ(counters_.touches_expected + counters_.touches_unexpected, 0u) << "there is no order";
  read_ahead_.expect(round_of_blocks());
  keep_to(0, 15);
  const std::uint64_t before = counters_.touches_expected;
  for (std::uint32_t block = 15; block < 20; ++block) {
    const auto advice = read_ahead_.notice(PageNumber{block} * kPagesOfBlock);
    EXPECT_TRUE(advice.sequential && advice.around) << "a block, whichever page of it is touched first";
    EXPECT_EQ(advice.pages, kPagesOfBlock);
    read_ahead_.touched_fresh(PageNumber{block} * kPagesOfBlock + 1);
  }
  EXPECT_EQ(counters_.touches_expected, before + 10);
  const std::uint64_t strange = counters_.touches_unexpected;
  (void)read_ahead_.notice(60'000);
  read_ahead_.touched_fresh(61'000);
  EXPECT_EQ(counters_.touches_unexpected, strange + 2);
  EXPECT_EQ(counters_.touches_expected, before + 10);
}

TEST_F(ReadAheadTest, ANewOrderIsFollowedFromTheRoundOnIfTheProgramWasThere) {
  read_ahead_.expect(round_of_blocks());
  keep_to(0, 15);
  ASSERT_NE(read_ahead_.followed(), nullptr);
  read_ahead_.expect(round_of_blocks());
  EXPECT_EQ(read_ahead_.followed(), nullptr) << "where the program is has to be seen anew";
  keep_to(15, 18);
  ASSERT_NE(read_ahead_.followed(), nullptr) << "it was trusted before";
  EXPECT_FALSE(read_ahead_.followed()->is_in_round());
  keep_to(18, 20);
  keep_to(0, 5);
  ASSERT_TRUE(read_ahead_.followed()->is_in_round());
  read_ahead_.expect(round_of_blocks());
  keep_to(5, 8);
  ASSERT_NE(read_ahead_.followed(), nullptr);
  EXPECT_TRUE(read_ahead_.followed()->is_in_round());
}

// Where the store is full or stalls, the same pages are asked for again and again.
TEST_F(ReadAheadTest, AnOrderIsNotGivenUpForPagesThatDidNotCome) {
  read_ahead_.expect(round_of_blocks());
  store({0, 50 * kPagesOfBlock});
  keep_to(0, 15);
  ASSERT_NE(read_ahead_.followed(), nullptr);
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_TRUE(read_ahead_.has_work());
    read_ahead_.end(read_ahead_.begin(), 0);
    ASSERT_NE(read_ahead_.followed(), nullptr) << i;
  }
  ASSERT_TRUE(read_ahead_.has_work());
  const ReadAhead::Request of_this = read_ahead_.begin();
  read_ahead_.expect(round_of_blocks());
  read_ahead_.end(of_this, 1 << 30);  // it is not the new order's
  keep_to(15, 18);
  ASSERT_NE(read_ahead_.followed(), nullptr);
  ASSERT_TRUE(read_ahead_.has_work());
  read_ahead_.end(read_ahead_.begin(), 1 << 30);
  EXPECT_EQ(read_ahead_.followed(), nullptr) << "so many have come in vain";
}

// Who has replaced it frees it, when nobody waits for the pager any more.
TEST_F(ReadAheadTest, AnOrderThatIsReplacedIsGivenBack) {
  auto first = round_of_blocks();
  const std::weak_ptr<const PageOrder> lives = first;
  read_ahead_.expect(std::move(first));
  auto before = read_ahead_.expect(ExpectedOrder::Tables(round_of_blocks(), false, 0));
  EXPECT_FALSE(lives.expired());
  before.reset();
  EXPECT_TRUE(lives.expired());
  EXPECT_EQ(read_ahead_.expect(std::nullopt) != nullptr, true);
  EXPECT_EQ(read_ahead_.order(), nullptr);
}

// The program came to the round while the tables were made.
TEST_F(ReadAheadTest, TablesThatWereMadeBeforeTheRoundAreOfTheRound) {
  read_ahead_.expect(round_of_blocks());
  ExpectedOrder::Tables tables(round_of_blocks(), read_ahead_.is_in_round(), 0);
  keep_to(0, 20);
  keep_to(0, 5);
  ASSERT_TRUE(read_ahead_.is_in_round());
  (void)read_ahead_.expect(std::move(tables));
  keep_to(5, 8);
  ASSERT_NE(read_ahead_.followed(), nullptr);
  EXPECT_TRUE(read_ahead_.followed()->is_in_round());
}

TEST_F(ReadAheadTest, WhatTheProgramSaysItBeginsWithNow) {
  store({0, 50 * kPagesOfBlock});
  read_ahead_.expect(round_of_blocks(), OrderFrom::kProgram);
  ASSERT_NE(read_ahead_.followed(), nullptr) << "nothing was touched";
  EXPECT_GT(room_.announced(), 0u);
  ASSERT_TRUE(read_ahead_.has_work());
  EXPECT_EQ(read_ahead_.begin().run.first, 0u);
}

TEST_F(ReadAheadTest, WhereTheProgramIsInItsPlanIsRememberedBesideWhatItSays) {
  read_ahead_.expect(round_of_blocks());
  keep_to(0, 20);
  keep_to(0, 5);
  ASSERT_TRUE(read_ahead_.is_in_round());
  read_ahead_.expect(round_of_blocks(), OrderFrom::kProgram);
  ASSERT_NE(read_ahead_.followed(), nullptr);
  EXPECT_FALSE(read_ahead_.followed()->is_in_round()) << "it begins with what comes once";
  read_ahead_.expect(round_of_blocks());
  keep_to(5, 8);
  ASSERT_NE(read_ahead_.followed(), nullptr);
  EXPECT_TRUE(read_ahead_.followed()->is_in_round());
}

TEST(OrderChoiceTest, WhatTheProgramSaysGoesBeforeItsPlan) {
  OrderChoice choice;
  const auto plans = round_of_blocks(), said = round_of_blocks();
  EXPECT_EQ(choice.chosen().order, nullptr);
  (void)choice.say(plans, OrderFrom::kPlan);
  EXPECT_EQ(choice.chosen().order, plans);
  (void)choice.say(said, OrderFrom::kProgram);
  EXPECT_EQ(choice.chosen().order, said);
  EXPECT_EQ(choice.chosen().from, OrderFrom::kProgram);
  choice.give_up(OrderFrom::kProgram);
  EXPECT_EQ(choice.chosen().order, plans);
  EXPECT_EQ(choice.say(said, OrderFrom::kProgram), said);
  EXPECT_EQ(choice.chosen().order, said) << "a program that says a new one is believed again";
  (void)choice.say(nullptr, OrderFrom::kProgram);
  choice.give_up(OrderFrom::kPlan);
  (void)choice.say(round_of_blocks(), OrderFrom::kPlan);
  EXPECT_EQ(choice.chosen().order, nullptr) << "a plan is not";
}

TEST_F(ReadAheadTest, WithoutAnOrderAllIsAsBefore) {
  read_ahead_.expect(nullptr);
  read_ahead_.expect(round_of_blocks());
  store({0, 50 * kPagesOfBlock});
  keep_to(0, 15);
  EXPECT_NE(read_ahead_.followed(), nullptr);
  EXPECT_GT(room_.announced(), 0u);
  read_ahead_.expect(nullptr);
  EXPECT_EQ(read_ahead_.followed(), nullptr);
  EXPECT_EQ(room_.announced(), 0u) << "what the order announced is not to come";
  (void)read_ahead_.notice(17 * kPagesOfBlock);
}

}  // namespace
}  // namespace farheap::pager
