// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/order_reads.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace farheap::pager {
namespace {

constexpr std::uint64_t kBlock = PageOrder::kBlockPages;

// Each block is used for ten moments; from number `round` on they are a round.
PageOrder order_over(const std::vector<std::uint32_t>& blocks, PageOrder::Number round = PageOrder::kNone) {
  PageOrder order(1);
  PageOrder::Moment now = 0;
  for (const std::uint32_t block : blocks) {
    order.add_visit({.block = block, .first = now, .last = now + 9});
    now += 10;
  }
  order.finish(round, round == PageOrder::kNone ? 0 : 10 * (blocks.size() - round));
  return order;
}

TEST(OrderReads, WhatComesForTheFirstTimeIsNotRead) {
  const PageOrder order = order_over({0, 1, 2, 3, 4});
  EXPECT_EQ(OrderReads(order, 2 * kBlock).until(order, 5), 0u);
}

// With room for two: 0 1 are there, 2 pushes 1 out, which is needed last; 0 is there, 1 is read, 2 is there.
TEST(OrderReads, WhatIsNeededLastLeaves) {
  const PageOrder order = order_over({0, 1, 2, 0, 2, 1});
  const OrderReads reads(order, 2 * kBlock);
  EXPECT_EQ(reads.until(order, 5), 0u);
  EXPECT_EQ(reads.until(order, 6), kBlock);
}

// A round of four in room for three: of each round one or two are read, of the first as of the thousandth.
TEST(OrderReads, RoundsGoOnForEver) {
  const PageOrder order = order_over({0, 1, 2, 3}, 0);
  const OrderReads reads(order, 3 * kBlock);
  const std::uint64_t of_one = reads.until(order, 4);
  EXPECT_GE(of_one, kBlock);
  EXPECT_LE(of_one, 2 * kBlock);
  for (PageOrder::Number round = 1; round < 1000; ++round) {
    ASSERT_EQ(reads.until(order, 4 * (round + 1)) - reads.until(order, 4 * round), of_one) << round;
  }
}

TEST(OrderReads, WhereAllHasRoomNothingIsRead) {
  const PageOrder order = order_over({5, 6, 0, 1, 2, 3}, 2);
  const OrderReads reads(order, 100 * kBlock);
  EXPECT_TRUE(reads.is_known());
  EXPECT_EQ(reads.until(order, 1'000'000), 0u);
}

// 0 is used all the time, and never again. With room for two, 1 and 2 push each other out beside it. A use that was no
// more than a moment let 0 leave at once.
TEST(OrderReads, WhatIsInUseDoesNotLeave) {
  PageOrder order(1);
  order.add_visit({.block = 0, .first = 0, .last = 99});
  for (PageOrder::Moment i = 1; i <= 4; ++i) {
    order.add_visit({.block = i % 2 == 1 ? 1U : 2U, .first = 10 * i, .last = 10 * i + 9});
  }
  order.finish();
  EXPECT_EQ(OrderReads(order, 2 * kBlock).until(order, 5), 2 * kBlock);
  EXPECT_EQ(OrderReads(order, 3 * kBlock).until(order, 5), 0u);
}

// Four blocks side by side have no room for themselves; afterwards there is room for two again, as before.
TEST(OrderReads, WhatHasNoRoomSideBySideLeavesAfterwards) {
  PageOrder order(1);
  for (std::uint32_t block = 0; block < 4; ++block) order.add_visit({.block = block, .first = block, .last = 99});
  PageOrder::Moment now = 100;
  for (int round = 0; round < 10; ++round) {
    for (std::uint32_t block = 0; block < 3; ++block, now += 10) {
      order.add_visit({.block = block, .first = now, .last = now + 9});
    }
  }
  order.finish();
  EXPECT_GE(OrderReads(order, 2 * kBlock).until(order, 34), 10 * kBlock);
}

TEST(OrderReads, OfNothingNothingIsKnown) {
  EXPECT_FALSE(OrderReads().is_known());
  const PageOrder order = order_over({});
  EXPECT_FALSE(OrderReads(order, kBlock).is_known());
  EXPECT_EQ(OrderReads(order, kBlock).until(order, 3), 0u);
}

TEST(OrderReads, OfTooManyVisitsNothingIsKnown) {
  const PageOrder order = order_over(std::vector<std::uint32_t>(OrderReads::kMostVisits + 1, 7));
  EXPECT_FALSE(OrderReads(order, kBlock).is_known());
}

// Belady's rule said once more, by looking ahead each time.
std::vector<std::uint64_t> reads_by_looking(const std::vector<std::uint32_t>& blocks, std::size_t room) {
  std::vector<std::uint64_t> before;
  std::map<std::uint32_t, bool> there;  // of those that were
  std::uint64_t reads = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    before.push_back(reads);
    const auto found = there.find(blocks[i]);
    if (found != there.end() && !found->second) ++reads;
    std::size_t count = 0;
    for (const auto& [block, is_there] : there) count += is_there && block != blocks[i] ? 1 : 0;
    if ((found == there.end() || !found->second) && count >= room) {
      std::uint32_t last = 0;
      std::size_t latest = 0;
      for (const auto& [block, is_there] : there) {
        std::size_t next = i + 1;
        while (next < blocks.size() && blocks[next] != block) ++next;
        if (is_there && next >= latest) last = block, latest = next;
      }
      there[last] = false;
    }
    there[blocks[i]] = true;
  }
  before.push_back(reads);
  return before;
}

TEST(OrderReads, IsBeladysRule) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::vector<std::uint32_t> blocks(60);
    for (auto& block : blocks) block = random() % 12;
    const std::size_t room = 1 + random() % 12;
    const PageOrder order = order_over(blocks);
    const OrderReads reads(order, room * kBlock);
    const auto wanted = reads_by_looking(blocks, room);
    EXPECT_EQ(reads.until(order, blocks.size()), wanted.back() * kBlock) << i;
  }
}

}  // namespace
}  // namespace farheap::pager
