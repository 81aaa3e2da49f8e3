// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile/touch_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <thread>

namespace farheap::profile::touch_order_test {
namespace {

struct Table {
  explicit Table(std::size_t room) : words(room) {}
  [[nodiscard]] TouchTable table() { return {noted, words}; }
  [[nodiscard]] std::vector<SiteTouch> read() const { return touches_in(noted, words); }
  [[nodiscard]] std::map<SiteId, double> weights() const {
    std::map<SiteId, double> sums;
    for (const auto [site, weight] : read()) sums[site] += weight;
    return sums;
  }
  std::atomic<std::uint32_t> noted{0};
  std::vector<std::atomic<std::uint64_t>> words;
};

TEST(TouchOrder, ComesAsItWasNoted) {
  Table table(16);
  TouchOrder order;
  for (SiteId site = 1; site <= 8; ++site) order.note(table.table(), site, 10 * site);
  std::vector<SiteTouch> wanted;
  for (SiteId site = 1; site <= 8; ++site) wanted.push_back({site, 10 * site});
  EXPECT_EQ(table.read(), wanted);
}

TEST(TouchOrder, OfALongRunIsOfAllOfItAndInItsOrder) {
  Table table(256);
  TouchOrder order;
  constexpr int kTouches = 100'000;
  for (int i = 0; i < kTouches; ++i) order.note(table.table(), 1 + static_cast<SiteId>(i / (kTouches / 10)), 3);
  const auto touches = table.read();
  EXPECT_GE(touches.size(), 64u);
  EXPECT_LE(touches.size(), 128u);
  EXPECT_TRUE(std::ranges::is_sorted(touches, {}, &SiteTouch::site));
  const auto weights = table.weights();
  ASSERT_EQ(weights.size(), 10u);
  double sum = 0;
  for (const auto& [site, weight] : weights) {
    EXPECT_NEAR(weight, 0.3 * kTouches, 0.1 * kTouches) << site;
    const auto noted = std::ranges::count(touches, site, &SiteTouch::site);
    EXPECT_GE(noted, 5) << "each part of the run is there alike: " << site;
    sum += weight;
  }
  EXPECT_NEAR(sum, 3 * kTouches, 3 * kTouches / 64.0) << "but for what is not noted yet";
}

// Two sites in turns, one of which weighs a hundredth of the other: which of two stays is not always the same.
TEST(TouchOrder, WhatStaysIsByItsWeight) {
  Table table(1 << 13);
  TouchOrder order;
  for (int i = 0; i < 1 << 17; ++i) order.note(table.table(), 1 + i % 2, i % 2 == 0 ? 1 : 99);
  const auto weights = table.weights();
  EXPECT_NEAR(weights.at(1) / (weights.at(1) + weights.at(2)), 0.01, 0.006);
}

TEST(TouchOrder, WeightsEndAtTheMostThatANumberHolds) {
  Table table(4);
  TouchOrder order;
  for (int i = 0; i < 9; ++i) order.note(table.table(), 7, ~std::uint32_t{0});
  for (const auto [site, weight] : table.read()) {
    EXPECT_EQ(site, 7u);
    EXPECT_EQ(weight, ~std::uint32_t{0});
  }
}

// Killed at any time: while what stays is written, the other half counts still.
TEST(TouchOrder, IsWholeWhileRoomIsMade) {
  Table table(64);
  TouchOrder order;
  for (SiteId i = 0; i < 32; ++i) order.note(table.table(), 1 + i, 1);
  const auto before = table.read();
  for (std::size_t i = 32; i < 40; ++i) table.words[i] = ~std::uint64_t{0};  // a part of what stays
  EXPECT_EQ(table.read(), before);
  order.note(table.table(), 99, 1);
  EXPECT_EQ(table.read().size(), 17u);
  EXPECT_EQ(table.read().back(), (SiteTouch{99, 1}));
}

TEST(TouchOrder, ATableWithoutRoomIsLeftAlone) {
  for (const std::size_t room : {0, 1, 2, 3}) {
    Table table(room);
    TouchOrder order;
    order.note(table.table(), 1, 1);
    EXPECT_TRUE(table.read().empty()) << room;
  }
}

TEST(TouchOrder, OfAnythingEndsWithTheTable) {
  Table table(8);
  for (auto& word : table.words) word = 0x0000'0005'0000'0002;
  for (const std::uint32_t noted : {~std::uint32_t{0}, std::uint32_t{1} << 31 | 9, std::uint32_t{9}}) {
    EXPECT_EQ(touches_in(noted, table.words), (std::vector<SiteTouch>(4, {2, 5}))) << noted;
  }
  EXPECT_TRUE(touches_in(~std::uint32_t{0}, {}).empty());
}

TEST(TouchOrder, OfManyThreadsHasOnlyWhatTheyNoted) {
  Table table(128);
  TouchOrder order;
  std::vector<std::thread> threads;
  for (SiteId site = 1; site <= 4; ++site) {
    threads.emplace_back([&, site] {
      for (int i = 0; i < 20'000; ++i) order.note(table.table(), site, site);
    });
  }
  for (int i = 0; i < 100; ++i) EXPECT_LE(table.read().size(), 64u);
  for (std::thread& one : threads) one.join();
  double sum = 0;
  for (const auto& [site, weight] : table.weights()) {
    EXPECT_TRUE(site >= 1 && site <= 4);
    sum += weight;
  }
  EXPECT_LE(sum, 20'000 * (1 + 2 + 3 + 4));
  EXPECT_GT(sum, 0);
}

}  // namespace
}  // namespace farheap::profile::touch_order_test
