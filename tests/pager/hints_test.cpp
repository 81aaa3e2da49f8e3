// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is said at the one door, and what comes of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "array_world.hpp"
#include "pager/page_order.hpp"

namespace farheap::pager::testing {
namespace {

// Remembers what was read, and stops before it is, if it shall.
class WatchedBacking : public MapBacking {
 public:
  WatchedBacking() : MapBacking({}, 1) {}
  Status read(std::span<const Read> runs) override {
    {
      std::unique_lock lock(mutex_);
      for (const Read& one : runs) reads.push_back(one.run);
      ++waiting_;
      changed_.notify_all();
      changed_.wait(lock, [&] { return !is_shut_; });
      --waiting_;
    }
    return MapBacking::read(runs);
  }
  void shut(bool on) {
    std::lock_guard lock(mutex_);
    is_shut_ = on;
    changed_.notify_all();
  }
  void wait_until_asked() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ != 0; });
  }
  std::vector<PageRun> reads;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_shut_ = false;
  int waiting_ = 0;
};

// Whoever touches a page does what the evictor does, too; the reader is called by the test.
class HintsTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kPages = 8192, kMemory = 2048;

  void evict() {
    for (int i = 0; i < 100 && pager_->evict_once() == Pager::Evicted::kWorked; ++i) continue;
  }
  bool touch(PageNumber page, bool write = true) {
    bool was_in_view = true;
    const auto access = [&](PageBytes& bytes) {
      if (write) return bytes.fill(static_cast<std::byte>(page % 251 + 1));
      EXPECT_EQ(bytes.front(), static_cast<std::byte>(page % 251 + 1)) << page;
    };
    while (view_.touch(page, access)) {
      was_in_view = false;
      pager_->fault(page, write, buffer_[0].data());
      evict();
    }
    return was_in_view;
  }
  void sweep(PageNumber first, PageNumber end) {
    for (PageNumber page = first; page < end; ++page) touch(page);
  }
  void say(HintKind kind, PageNumber first, std::uint64_t count) { pager_->hint({kind, first, count}); }
  [[nodiscard]] std::uint64_t in_view(PageNumber first, PageNumber end) {
    std::uint64_t count = 0;
    for (PageNumber page = first; page < end; ++page) count += pager_->state(page) == PageState::kPresent;
    return count;
  }
  [[nodiscard]] std::uint64_t in_memory(PageNumber first, PageNumber end) {
    std::uint64_t count = 0;
    for (PageNumber page = first; page < end; ++page) count += is_in_memory(pager_->state(page));
    return count;
  }
  void read_ahead() {
    for (int in_vain = 0; in_vain < 3;) {
      evict();
      in_vain = pager_->read_ahead_once(buffer_[0].data(), 0) != 0 ? 0 : in_vain + 1;
    }
  }
  void TearDown() override {
    pager_->freeze();
    pager_->thaw();
    EXPECT_EQ(pager_->check(), "");
    EXPECT_EQ(view_.broken_rules, 0);
  }

  ArrayView view_{kPages};
  WatchedBacking backing_;
  FixedBudget budget_{kMemory};
  base::RunCounters counters_;
  std::unique_ptr<Pager> pager_ =
      Pager::make(view_, backing_, budget_, counters_,
                  {.capacity_pages = kPages, .read_ahead_pages = 0, .room_patience = std::chrono::milliseconds(0)})
          .value();
  std::vector<PageBytes> buffer_{512};
};

// ---- keep

TEST_F(HintsTest, KeptPagesStayUntilThatIsTakenBack) {
  sweep(0, 256);
  say(HintKind::kKeep, 0, 256);
  for (int round = 0; round < 2; ++round) sweep(1024, kPages);
  EXPECT_EQ(in_view(0, 256), 256u);
  say(HintKind::kNormal, 0, 256);
  for (int round = 0; round < 2; ++round) sweep(1024, kPages);
  EXPECT_EQ(in_memory(0, 256), 0u);
}

TEST_F(HintsTest, WhatIsSaidToBeKeptIsKeptWheneverItComes) {
  say(HintKind::kKeep, 0, 256);  // nobody has touched it yet
  sweep(0, 256);
  sweep(1024, kPages);
  EXPECT_EQ(in_view(0, 256), 256u);
  say(HintKind::kNormal, 0, 256);
  for (int round = 0; round < 2; ++round) sweep(1024, kPages);
  ASSERT_EQ(in_memory(0, 256), 0u);
  say(HintKind::kKeep, 0, 256);  // it is in the store
  for (PageNumber page = 0; page < 256; ++page) touch(page, false);
  sweep(1024, kPages);
  EXPECT_EQ(in_view(0, 256), 256u);
}

TEST_F(HintsTest, OtherWordsEndKeeping) {
  for (const HintKind kind : {HintKind::kDoneWith, HintKind::kStream, HintKind::kNormal}) {
    sweep(0, 256);
    say(HintKind::kKeep, 0, 256);
    say(kind, 0, 256);
    for (int round = 0; round < 2; ++round) sweep(1024, kPages);
    EXPECT_EQ(in_memory(0, 256), 0u) << static_cast<int>(kind);
  }
}

TEST_F(HintsTest, WhatIsTakenBackInPartStaysInPart) {
  sweep(0, 1024);
  say(HintKind::kKeep, 0, 1024);
  say(HintKind::kNormal, 512, 512);
  for (int round = 0; round < 2; ++round) sweep(1024, kPages);
  EXPECT_EQ(in_view(0, 512), 512u);
  EXPECT_EQ(in_memory(512, 1024), 0u);
}

TEST_F(HintsTest, HalfOfMemoryIsKeptAtTheMost) {
  say(HintKind::kKeep, 0, kPages);
  for (int round = 0; round < 2; ++round) sweep(0, kPages);
  const std::uint64_t before = counters_.faults;
  sweep(0, kPages);
  // What came first is kept; the rest passes by, and comes in as it always would.
  EXPECT_GE(in_view(0, kMemory), kMemory / 2 - 512);
  EXPECT_LT(counters_.faults - before, kPages);
  EXPECT_LE(pager_->resident_pages(), kMemory);
}

TEST_F(HintsTest, WithLessMemoryLessIsKept) {
  sweep(0, 1024);
  say(HintKind::kKeep, 0, 1024);
  budget_.pages = 512;
  for (int round = 0; round < 3; ++round) sweep(4096, 6144);
  EXPECT_LE(in_memory(0, 1024), 256u);
  EXPECT_LE(pager_->resident_pages(), 512u);
}

TEST_F(HintsTest, WhatIsGivenBackIsKeptNoMore) {
  sweep(0, 256);
  say(HintKind::kKeep, 0, 256);
  pager_->discard(0, 256);
  sweep(0, 256);  // as something else
  for (int round = 0; round < 2; ++round) sweep(1024, kPages);
  EXPECT_EQ(in_memory(0, 256), 0u);
}

// ---- stream

// The hint was lost for memory that nobody had touched.
TEST_F(HintsTest, WhatIsSaidToBeStreamedIsFromItsFirstTouchOn) {
  constexpr PageNumber kSaid = 0, kUnsaid = 1024, kSaidAndTakenBack = 2048;
  say(HintKind::kStream, kSaid, 512);
  say(HintKind::kStream, kSaidAndTakenBack, 512);
  say(HintKind::kNormal, kSaidAndTakenBack, 512);
  const auto pages_at_a_miss = [&](PageNumber first) {
    for (PageNumber i = 0; i < 512; ++i) touch(first + i * 37 % 512);  // in no order that would be followed
    for (int round = 0; round < 4; ++round) sweep(4096, kPages);
    PageNumber missed = first + 256;
    while (is_in_memory(pager_->state(missed))) ++missed;
    const std::uint64_t before = in_memory(first, first + 512);
    touch(missed, false);
    return in_memory(first, first + 512) - before;
  };
  EXPECT_GE(pages_at_a_miss(kSaid), 32u);
  EXPECT_LT(pages_at_a_miss(kUnsaid), 32u);
  EXPECT_LT(pages_at_a_miss(kSaidAndTakenBack), 32u);
}

// ---- done with

TEST_F(HintsTest, DoneWithDoesNotWaitForAReadThatIsUnderWay) {
  sweep(0, kPages);
  ASSERT_EQ(in_memory(0, 64), 0u);
  backing_.shut(true);
  std::vector<PageBytes> buffer(512);
  std::thread toucher([&] { pager_->fault(0, false, buffer[0].data()); });
  backing_.wait_until_asked();
  ASSERT_EQ(pager_->state(0), PageState::kFilling);
  say(HintKind::kDoneWith, 0, 512);
  EXPECT_EQ(pager_->state(0), PageState::kFilling) << "it was waited for";
  backing_.shut(false);
  toucher.join();
  EXPECT_EQ(pager_->state(0), PageState::kPresent) << "who touched it has it";
  // It is the next to leave, though it is the one that came last.
  budget_.pages = kMemory / 2;
  evict();
  EXPECT_NE(pager_->state(0), PageState::kPresent);
  budget_.pages = kMemory;
  touch(0, false);
}

TEST_F(HintsTest, DoneWithWhatComesAheadDoesNotWaitForIt) {
  sweep(0, kPages);
  backing_.shut(true);
  std::vector<PageBytes> buffer(512);
  say(HintKind::kWillNeed, 0, 64);
  std::thread reader([&] {
    while (pager_->read_ahead_once(buffer[0].data(), 0) == 0) continue;
  });
  evict();
  backing_.wait_until_asked();
  say(HintKind::kDoneWith, 0, 64);
  backing_.shut(false);
  reader.join();
  sweep(4096, 4096 + 512);
  EXPECT_EQ(in_view(0, 64), 0u);
  EXPECT_GT(in_view(kPages - 512, kPages), 256u) << "what was older, but not done with, is there";
  for (PageNumber page = 0; page < 64; ++page) touch(page, false);
}

TEST_F(HintsTest, WhatIsNeededAgainIsNotLetGoOfFirst) {
  sweep(0, 256);
  sweep(1024, 1100);
  say(HintKind::kDoneWith, 0, 256);
  EXPECT_EQ(in_view(0, 256), 0u);
  say(HintKind::kKeep, 0, 256);
  for (PageNumber page = 0; page < 256; ++page) touch(page, false);
  for (int round = 0; round < 2; ++round) sweep(1024, kPages);
  EXPECT_EQ(in_view(0, 256), 256u);
}

// ---- will need

TEST_F(HintsTest, WhatIsNeededComesInTheOrderInWhichItWasSaid) {
  sweep(0, kPages);
  budget_.pages = 2 * kPages;
  evict();
  backing_.reads.clear();
  const std::vector<PageNumber> said = {1400, 300, 4000, 700, 2500};
  for (const PageNumber first : said) say(HintKind::kWillNeed, first, 40);
  read_ahead();
  std::vector<PageNumber> came;
  for (const PageRun& run : backing_.reads) came.push_back(run.first);
  EXPECT_EQ(came, said);
  for (const PageNumber first : said) EXPECT_EQ(in_view(first, first + 40), 40u) << first;
}

// Once only the last 128 MiB of it came: what was said first was taken for what had been passed.
TEST_F(HintsTest, AllOfALargeRangeThatIsNeededComes) {
  constexpr PageNumber kMany = 65 * PageNumber{kExtentPages};
  ArrayView view(2 * kMany);
  WatchedBacking backing;
  FixedBudget budget(4 * kMany);
  auto pager = Pager::make(view, backing, budget, counters_, {.capacity_pages = 2 * kMany}).value();
  const auto touch_all = [&] {
    for (PageNumber page = 0; page < kMany; ++page) {
      while (view.touch(page, [](PageBytes& bytes) { bytes.fill(std::byte{1}); })) {
        pager->fault(page, true, buffer_[0].data());
      }
    }
  };
  touch_all();
  pager->hint({HintKind::kDoneWith, 0, kMany});
  budget.pages = 64;
  while (pager->evict_once() == Pager::Evicted::kWorked) continue;
  budget.pages = 4 * kMany;
  (void)pager->evict_once();
  pager->hint({HintKind::kWillNeed, 0, kMany});
  while (pager->read_ahead_once(buffer_[0].data(), 0) != 0) continue;
  std::uint64_t there = 0;
  for (PageNumber page = 0; page < kMany; ++page) there += pager->state(page) == PageState::kPresent;
  EXPECT_EQ(there, kMany);
}

TEST_F(HintsTest, ThreeQuartersOfMemoryAreAskedForAtTheMost) {
  sweep(0, kPages);
  backing_.reads.clear();
  say(HintKind::kWillNeed, 0, 1000);
  say(HintKind::kWillNeed, 1000, kPages);
  read_ahead();
  std::uint64_t pages = 0;
  for (const PageRun& run : backing_.reads) pages += run.count;
  EXPECT_GT(pages, kMemory / 2);
  EXPECT_LE(pages, kMemory / 4 * 3);
}

// ---- an order that the program says

std::shared_ptr<const PageOrder> order_of(const std::vector<std::uint32_t>& blocks, bool again) {
  auto order = std::make_shared<PageOrder>(PageOrder::kBlockPages);
  PageOrder::Moment now = 0;
  for (const std::uint32_t block : blocks) {
    order->add_visit({.block = block, .first = now, .last = now + PageOrder::kBlockPages - 1});
    now += PageOrder::kBlockPages;
  }
  again ? order->finish(0, now) : order->finish();
  return order;
}

class SaidOrderHintsTest : public HintsTest {
 protected:
  static constexpr std::uint32_t kBlocks = kPages / PageOrder::kBlockPages;
  SaidOrderHintsTest() {
    for (std::uint32_t i = 0; i < kBlocks; ++i) blocks_.push_back(i);
    std::shuffle(blocks_.begin(), blocks_.end(), random_);
  }
  // With the reader at work behind each block.
  void use(const std::vector<std::uint32_t>& blocks) {
    for (const std::uint32_t block : blocks) {
      read_ahead();
      const PageNumber first = PageNumber{block} * PageOrder::kBlockPages;
      for (PageNumber page = first; page < first + PageOrder::kBlockPages; ++page) touch(page, false);
    }
  }
  std::uint64_t pages_read() {
    std::uint64_t pages = 0;
    for (const PageRun& run : backing_.reads) pages += run.count;
    backing_.reads.clear();
    return pages;
  }
  std::mt19937 random_{7};
  std::vector<std::uint32_t> blocks_;
};

TEST_F(SaidOrderHintsTest, WhatIsSaidComesBeforeItIsTouched) {
  sweep(0, kPages);
  backing_.reads.clear();
  pager_->expect(order_of(blocks_, false), OrderFrom::kProgram);
  read_ahead();
  // From the first step on, and a bounded lead of it only.
  ASSERT_FALSE(backing_.reads.empty());
  EXPECT_EQ(PageOrder::block_of(backing_.reads.front().first), blocks_.front());
  EXPECT_LE(pages_read(), kMemory / 4);
}

// More than memory holds comes all the same, and nothing twice: what was asked for stays until it was used.
TEST_F(SaidOrderHintsTest, FourTimesMemoryInAnyOrderIsReadOnce) {
  sweep(0, kPages);
  (void)pages_read();
  pager_->expect(order_of(blocks_, false), OrderFrom::kProgram);
  use(blocks_);
  const std::uint64_t read = pages_read();
  EXPECT_LE(read, kPages);
  EXPECT_GE(read, kPages - kMemory);
  EXPECT_GT(counters_.touches_expected, 10 * counters_.touches_unexpected);
  EXPECT_EQ(counters_.orders_given_up, 0u);
}

// Belady's choice: of a round over four times memory a part of memory stays each time. What was used last would be the
// wrong one each time.
TEST_F(SaidOrderHintsTest, OfARoundAPartOfMemoryStays) {
  sweep(0, kPages);
  use(blocks_);
  (void)pages_read();
  use(blocks_);
  const std::uint64_t without = pages_read();
  pager_->expect(order_of(blocks_, true), OrderFrom::kProgram);
  use(blocks_);
  (void)pages_read();
  use(blocks_);
  const std::uint64_t with = pages_read();
  EXPECT_LT(with, kPages - kMemory / 2);
  EXPECT_LT(with, without - kMemory / 4);
  EXPECT_EQ(counters_.orders_given_up, 0u);
}

// Once that was one stretch of it, which the program passed unseen: what it read in the rest was compared with nothing,
// and the order given up.
TEST_F(SaidOrderHintsTest, WhatStaysOfARoundIsSpreadOverIt) {
  for (const std::uint32_t block : blocks_) sweep(PageNumber{block} * 64, PageNumber{block + 1} * 64);
  pager_->expect(order_of(blocks_, true), OrderFrom::kProgram);
  for (int round = 0; round < 3; ++round) use(blocks_);
  int longest = 0, run = 0;
  for (const std::uint32_t block : blocks_) {
    run = in_view(PageNumber{block} * 64, PageNumber{block + 1} * 64) > 32 ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  EXPECT_GT(longest, 0);
  EXPECT_LT(longest, static_cast<int>(kMemory / PageOrder::kBlockPages / 2));
  EXPECT_EQ(counters_.orders_given_up, 0u);
}

TEST_F(SaidOrderHintsTest, WhatIsKeptStaysWhateverTheOrder) {
  sweep(0, kPages);
  const PageNumber kept = 2 * kExtentPages;
  sweep(kept, kept + 256);
  say(HintKind::kKeep, kept, 256);
  pager_->expect(order_of(blocks_, true), OrderFrom::kProgram);
  use(blocks_);
  use(blocks_);
  EXPECT_EQ(in_view(kept, kept + 256), 256u);
}

TEST_F(SaidOrderHintsTest, ThePlanIsFollowedAgainWhenWhatWasSaidIsOver) {
  sweep(0, kPages);
  auto plans = blocks_;
  std::shuffle(plans.begin(), plans.end(), random_);
  const auto by_plan = order_of(plans, true);
  pager_->expect(by_plan);
  use(plans);
  const std::uint64_t expected = counters_.touches_expected;
  ASSERT_GT(expected, 10 * counters_.touches_unexpected);
  pager_->expect(order_of(blocks_, false), OrderFrom::kProgram);
  pager_->expect(order_of(plans, true));  // a plan that learns more does not come before it
  use(blocks_);
  EXPECT_GT(counters_.touches_expected - expected, 4 * counters_.touches_unexpected);
  const std::uint64_t after = counters_.touches_expected;
  for (int round = 0; round < 3; ++round) {
    use(plans);
    pager_->weigh_order();
  }
  const std::uint64_t by_the_plan = counters_.touches_expected - after;
  EXPECT_GT(by_the_plan, expected);
  EXPECT_EQ(counters_.orders_given_up, 0u);
}

TEST_F(SaidOrderHintsTest, AProgramIsBelievedAgainAfterAnOrderThatItDidNotKeepTo) {
  sweep(0, kPages);
  auto others = blocks_;
  for (int i = 0; i < 20 && counters_.orders_given_up == 0; ++i) {
    std::shuffle(others.begin(), others.end(), random_);
    if (i == 0) pager_->expect(order_of(blocks_, true), OrderFrom::kProgram);
    use(others);
  }
  ASSERT_EQ(counters_.orders_given_up, 1u);
  const std::uint64_t expected = counters_.touches_expected, unexpected = counters_.touches_unexpected;
  pager_->expect(order_of(blocks_, true), OrderFrom::kProgram);
  use(blocks_);
  use(blocks_);
  EXPECT_GT(counters_.touches_expected - expected, 10 * (counters_.touches_unexpected - unexpected));
  EXPECT_EQ(counters_.orders_given_up, 1u);
}

TEST_F(SaidOrderHintsTest, AnOrderEnds) {
  sweep(0, kPages);
  pager_->expect(order_of(blocks_, true), OrderFrom::kProgram);
  use(blocks_);
  pager_->expect(nullptr, OrderFrom::kProgram);
  const std::uint64_t counted = counters_.touches_expected + counters_.touches_unexpected;
  use(blocks_);
  EXPECT_EQ(counters_.touches_expected + counters_.touches_unexpected, counted);
}

}  // namespace
}  // namespace farheap::pager::testing
