// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Orders that come, are replaced and go while a program pages: they are advice, and its contents stay right.
#include <gtest/gtest.h>

#include <random>

#include "lone_pager.hpp"
#include "pager/page_order.hpp"

namespace farheap::pager::testing {
namespace {

class ReplacedOrderTest : public LonePagerTest {
 protected:
  // Writes a value, or checks that the one that was written last is there.
  void use(PageNumber page, bool writes) {
    if (writes) ++values_[page];
    const auto value = static_cast<std::byte>(values_[page]);
    const auto access = [&](PageBytes& bytes) {
      if (writes) return bytes.fill(value);
      EXPECT_EQ(bytes.front(), value) << page;
      EXPECT_EQ(bytes.back(), value) << page;
    };
    for (int tries = 0; view_.touch(page, access); ++tries) {
      // One thread does all here: a page that is brought in leaves before it is used where an order of something else
      // says that all others are needed before. With threads of its own a program is faster than that.
      if (tries == kMostTries) pager_->expect(nullptr);
      ASSERT_LT(tries, 2 * kMostTries) << "page " << page << " does not stay without an order either";
      pager_->fault(page, writes, buffer_[0].data());
      for (int i = 0; i < 100 && pager_->evict_once() == Pager::Evicted::kWorked; ++i) continue;
    }
  }
  void sweep(bool writes) {
    for (PageNumber page = 0; page < kPages; ++page) use(page, writes);
  }
  // What comes once and then again and again; true to the sweeps or not.
  static std::shared_ptr<const PageOrder> order(std::mt19937& random, bool is_true) {
    constexpr std::uint32_t kBlocks = kPages / PageOrder::kBlockPages;
    auto made = std::make_shared<PageOrder>(64);
    PageOrder::Moment now = 0;
    const std::uint32_t once = random() % 10, blocks = 1 + random() % kBlocks;
    for (std::uint32_t i = 0; i < once + blocks; ++i) {
      const std::uint32_t block = is_true ? (i + kBlocks - once) % kBlocks : random() % (2 * kBlocks);
      made->add_visit({.block = block,
                       .first = now,
                       .last = now + 63,
                       .first_page = is_true ? 0 : static_cast<std::uint32_t>(random() % 64)});
      now += 64;
    }
    random() % 3 == 0 ? made->finish() : made->finish(once, PageOrder::Moment{blocks} * 64);
    return made;
  }
  static constexpr int kMostTries = 100;
  std::vector<std::uint8_t> values_ = std::vector<std::uint8_t>(kPages);
};

TEST_F(ReplacedOrderTest, ContentsStayRight) {
  std::mt19937 random(1);
  sweep(true);
  for (int i = 0; i < 40; ++i) {
    pager_->expect(random() % 5 == 0 ? nullptr : order(random, random() % 2 == 0));
    const PageNumber first = random() % kPages, count = random() % kPages;
    for (PageNumber k = 0; k < count; ++k) {
      use((first + k) % kPages, random() % 3 == 0);
      if (random() % 500 == 0) pager_->expect(order(random, true));
    }
    if (HasFailure()) FAIL() << "order " << i;
  }
  pager_->expect(nullptr);
  sweep(false);
}

TEST_F(ReplacedOrderTest, SweepsInTheirOrderAreExpected) {
  std::mt19937 random(2);
  auto sweeps = std::make_shared<PageOrder>(64);
  for (std::uint32_t i = 0; i < kPages / 64; ++i) {
    sweeps->add_visit({.block = i, .first = PageOrder::Moment{i} * 64, .last = PageOrder::Moment{i} * 64 + 63});
  }
  sweeps->finish(0, kPages);
  sweep(true);
  EXPECT_EQ(counters_.touches_expected + counters_.touches_unexpected, 0u);
  pager_->expect(sweeps);
  for (int i = 0; i < 4; ++i) sweep(false);
  EXPECT_EQ(counters_.orders_given_up, 0u);
  EXPECT_GT(counters_.touches_expected, 20 * counters_.touches_unexpected);
  pager_->expect(nullptr);
  const std::uint64_t counted = counters_.touches_expected + counters_.touches_unexpected;
  sweep(false);
  EXPECT_EQ(counters_.touches_expected + counters_.touches_unexpected, counted);
}

// Half of the memory is taken away while the program is followed: it is followed in what there is.
TEST_F(ReplacedOrderTest, WithHalfOfTheBudgetTheOrderIsStillFollowed) {
  auto sweeps = std::make_shared<PageOrder>(64);
  for (std::uint32_t i = 0; i < kPages / 64; ++i) {
    sweeps->add_visit({.block = i, .first = PageOrder::Moment{i} * 64, .last = PageOrder::Moment{i} * 64 + 63});
  }
  sweeps->finish(0, kPages);
  sweep(true);
  pager_->expect(sweeps);
  for (int i = 0; i < 3; ++i) sweep(i == 1);
  budget_.pages = kMemory / 2;
  sweep(false);
  pager_->weigh_order();
  for (int i = 0; i < 6; ++i) {
    sweep(i == 1);
    EXPECT_LE(pager_->resident_pages(), kMemory / 2 + PageOrder::kBlockPages);
  }
  EXPECT_EQ(pager_->order_state(), OrderState::kKept);
  EXPECT_GT(counters_.touches_expected, 20 * counters_.touches_unexpected);
}

// What comes after an order that is left is one of another part of the program: it is not taken to be in its round, and
// followed though the one before was given up.
TEST_F(ReplacedOrderTest, AnOrderOfAnotherPartIsFollowedAfterOneThatWasGivenUp) {
  const auto backwards = [](std::uint32_t first, std::uint32_t blocks) {
    auto made = std::make_shared<PageOrder>(64);
    for (std::uint32_t i = 0; i < blocks; ++i) {
      const PageOrder::Moment begin = PageOrder::Moment{i} * 64;
      made->add_visit({.block = first + blocks - 1 - i, .first = begin, .last = begin + 63, .first_page = 63});
    }
    made->finish(0, PageOrder::Moment{blocks} * 64);
    return made;
  };
  EXPECT_EQ(pager_->order_state(), OrderState::kNone);
  pager_->expect(backwards(0, kPages / 64));
  std::mt19937 random(3);
  for (int i = 0; i < 200'000 && pager_->order_state() != OrderState::kGivenUp; ++i) use(random() % kPages, true);
  ASSERT_EQ(pager_->order_state(), OrderState::kGivenUp);
  pager_->expect(backwards(0, kPages / 64));
  EXPECT_EQ(pager_->order_state(), OrderState::kGivenUp) << "the same order, with other objects";
  pager_->expect(backwards(0, kPages / 64), OrderFrom::kNextPhase);
  EXPECT_EQ(pager_->order_state(), OrderState::kKept);
  const std::uint64_t expected = counters_.touches_expected, unexpected = counters_.touches_unexpected;
  for (int i = 0; i < 4; ++i) {
    for (PageNumber page = kPages; page-- > 0;) use(page, false);
  }
  EXPECT_GT(counters_.touches_expected - expected, 10 * (counters_.touches_unexpected - unexpected));
}

}  // namespace
}  // namespace farheap::pager::testing
