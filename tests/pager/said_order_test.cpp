// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/said_order.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/units.hpp"
#include "pager/public_hints.hpp"

namespace farheap::pager {
namespace {

using base::kPageBytes;
constexpr std::size_t kBlockBytes = PageOrder::kBlockPages * kPageBytes;

// Addresses alone: nobody touches them.
std::byte* const g_begin = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 44);
constexpr std::size_t kBytes = 100 * kBlockBytes;
const std::span<const std::byte> g_range(g_begin, kBytes);

farheap_step step(std::size_t offset, std::size_t bytes, farheap_way way = FARHEAP_FORWARD) {
  return {g_begin + offset, bytes, way};
}
std::vector<std::uint32_t> blocks_of(const PageOrder& order) {
  std::vector<std::uint32_t> blocks;
  for (const PageOrder::Visit& visit : order.visits()) blocks.push_back(visit.block);
  return blocks;
}

TEST(SaidOrderTest, StepsAreVisitsOneAfterTheOther) {
  const farheap_step steps[] = {step(4 * kBlockBytes, 2 * kBlockBytes), step(0, kBlockBytes)};
  const auto order = said_order(g_range, steps, FARHEAP_ONCE);
  ASSERT_NE(order, nullptr);
  EXPECT_EQ(blocks_of(*order), (std::vector<std::uint32_t>{4, 5, 0}));
  EXPECT_FALSE(order->has_round());
  for (PageOrder::Number i = 0; i < 3; ++i) {
    EXPECT_EQ(order->visit(i).first, i * PageOrder::kBlockPages);
    EXPECT_EQ(order->visit(i).last, (i + 1) * PageOrder::kBlockPages - 1);
    EXPECT_EQ(order->visit(i).first_page, 0u);
  }
}

TEST(SaidOrderTest, BackwardTheLastPageIsUsedFirst) {
  const farheap_step steps[] = {step(kBlockBytes / 2, 2 * kBlockBytes, FARHEAP_BACKWARD)};
  const auto order = said_order(g_range, steps, FARHEAP_ONCE);
  ASSERT_NE(order, nullptr);
  EXPECT_EQ(blocks_of(*order), (std::vector<std::uint32_t>{2, 1, 0}));
  EXPECT_EQ(order->visit(0).first_page, PageOrder::kBlockPages / 2 - 1);
  EXPECT_EQ(order->visit(1).first_page, PageOrder::kBlockPages - 1);
  EXPECT_EQ(order->visit(2).last, 2 * PageOrder::kBlockPages - 1);
}

TEST(SaidOrderTest, FromTheRoundOnStepsComeAgain) {
  const farheap_step steps[] = {step(0, kBlockBytes), step(7 * kBlockBytes, kBlockBytes), step(0, 2 * kBlockBytes)};
  const auto order = said_order(g_range, steps, 1);
  ASSERT_NE(order, nullptr);
  EXPECT_EQ(blocks_of(*order), (std::vector<std::uint32_t>{0, 7, 0, 1}));
  ASSERT_TRUE(order->has_round());
  EXPECT_EQ(order->round(), 1u);
  EXPECT_EQ(order->visit(4).block, 7u);
  EXPECT_EQ(order->visit(4).first, 4 * PageOrder::kBlockPages);
}

TEST(SaidOrderTest, WhatComesBeforeTheRoundIsNoPartOfIt) {
  const farheap_step steps[] = {step(0, kPageBytes), step(kPageBytes, kPageBytes)};  // the same block
  const auto order = said_order(g_range, steps, 1);
  ASSERT_NE(order, nullptr);
  EXPECT_EQ(order->visits().size(), 2u);
  EXPECT_EQ(order->round(), 1u);
  EXPECT_EQ(order->visit(2).first, order->visit(1).first + 1);
}

TEST(SaidOrderTest, SmallStepsInOneBlockAreOneVisit) {
  std::vector<farheap_step> steps;
  for (std::size_t i = 0; i < 20; ++i) steps.push_back(step(i * kPageBytes + i % 2 * kBlockBytes, 100));
  const auto order = said_order(g_range, steps, FARHEAP_ONCE);
  ASSERT_NE(order, nullptr);
  EXPECT_EQ(blocks_of(*order), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(order->visit(1).last, 19u);
}

TEST(SaidOrderTest, WhatBeginsElsewhereIsLeftOut) {
  const farheap_step steps[] = {
      step(kBytes, kBlockBytes), step(0, 0), {nullptr, kBlockBytes, FARHEAP_FORWARD}, step(kBytes - 1, SIZE_MAX / 2)};
  const auto order = said_order(g_range, steps, FARHEAP_ONCE);
  ASSERT_NE(order, nullptr);
  EXPECT_EQ(blocks_of(*order), std::vector<std::uint32_t>{99});
  EXPECT_EQ(order->visit(0).last, 0u) << "a page of it lies in the range";
  EXPECT_EQ(said_order(g_range, std::span(steps).first(3), FARHEAP_ONCE), nullptr);
  EXPECT_EQ(said_order(g_range, {}, FARHEAP_ONCE), nullptr);
}

TEST(SaidOrderTest, ARoundOfNothingIsNone) {
  const farheap_step steps[] = {step(0, kBlockBytes), step(0, 0)};
  const auto order = said_order(g_range, steps, 1);
  ASSERT_NE(order, nullptr);
  EXPECT_FALSE(order->has_round());
}

TEST(SaidOrderTest, WhatIsNoOrderIsRefused) {
  const farheap_step one = step(0, kBlockBytes);
  EXPECT_TRUE(is_order(&one, 1, FARHEAP_ONCE));
  EXPECT_TRUE(is_order(&one, 1, 0));
  EXPECT_TRUE(is_order(nullptr, 0, FARHEAP_ONCE));
  EXPECT_FALSE(is_order(&one, 1, 1));
  EXPECT_FALSE(is_order(nullptr, 1, FARHEAP_ONCE));
  EXPECT_FALSE(is_order(nullptr, 0, 0));
  const farheap_step strange = {g_begin, 1, 2};
  EXPECT_FALSE(is_order(&strange, 1, FARHEAP_ONCE));
  const farheap_step whole = step(0, kMostSaidVisits * kBlockBytes), more[] = {whole, one}, endless = step(0, SIZE_MAX);
  EXPECT_TRUE(is_order(&whole, 1, FARHEAP_ONCE));
  EXPECT_FALSE(is_order(more, 2, FARHEAP_ONCE));
  EXPECT_FALSE(is_order(&endless, 1, FARHEAP_ONCE));
}

}  // namespace
}  // namespace farheap::pager
