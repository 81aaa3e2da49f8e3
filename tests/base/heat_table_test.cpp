// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/heat_table.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace farheap::base {
namespace {

std::unique_ptr<HeatTable> started() {
  auto table = std::make_unique<HeatTable>();
  table->start(7);
  return table;
}

TEST(HeatTable, CountsByRange) {
  const auto table = started();
  table->count(0, Heat::kFresh, 1);
  table->count(2 * kMiB - 1, Heat::kFresh, 1);
  table->count(2 * kMiB, Heat::kBytesRead, 4096);
  const auto seen = table->read();
  EXPECT_EQ(seen.pid, 7);
  EXPECT_EQ(seen.range_bytes, 2 * kMiB);
  EXPECT_EQ(seen.ranges[0][Heat::kFresh], 2U);
  EXPECT_EQ(seen.ranges[0][Heat::kBytesRead], 0U);
  EXPECT_EQ(seen.ranges[1][Heat::kBytesRead], 4096U);
}

TEST(HeatTable, FollowsARandomHeapAsItGrows) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 50; ++round) {
    const auto table = started();
    std::map<std::uint64_t, HeatCounts> reference;  // by extent of 2 MiB
    std::uint64_t heap = 4 * kMiB;
    for (int i = 0; i < 2000; ++i) {
      if (random() % 100 == 0) heap = std::min<std::uint64_t>(heap * (1 + random() % 3), kTiB);
      const std::uint64_t offset = random() % heap;
      const auto kind = static_cast<Heat>(random() % kHeatKinds);
      const std::uint64_t by = random() % 10000;
      table->count(offset, kind, by);
      reference[offset / (2 * kMiB)][kind] += by;
    }
    const auto seen = table->read();
    ASSERT_EQ(seen.range_bytes & (seen.range_bytes - 1), 0U);
    std::array<HeatCounts, HeatTable::kRanges> wanted{};
    for (const auto& [extent, counts] : reference) wanted.at(extent * 2 * kMiB / seen.range_bytes) += counts;
    for (std::size_t i = 0; i < HeatTable::kRanges; ++i) {
      ASSERT_EQ(seen.ranges[i].values, wanted[i].values) << "range " << i << " in round " << round;
    }
    const std::uint64_t last = reference.rbegin()->first * 2 * kMiB;
    EXPECT_TRUE(seen.range_bytes == 2 * kMiB || last >= HeatTable::kRanges * seen.range_bytes / 2)
        << "wider than needed";
  }
}

TEST(HeatTable, LosesNothingWhenThreadsCountAndItDoubles) {
  constexpr int kThreads = 4;
  constexpr int kCounts = 20000;
  const auto table = started();
  std::vector<std::thread> threads;
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done.load()) EXPECT_LE(table->read().total().faults(), std::uint64_t{kThreads} * kCounts);
  });
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < kCounts; ++i) {
        table->count((i * 0x9E3779B97F4A7C15U) >> (40 - i * 20 / kCounts), static_cast<Heat>(t), 1);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  done = true;
  reader.join();
  EXPECT_EQ(table->read().total().faults(), std::uint64_t{kThreads} * kCounts);
}

TEST(HeatTable, StartsAnew) {
  const auto table = started();
  table->count(500 * kGiB, Heat::kStallNs, 9);
  table->start(8);
  const auto seen = table->read();
  EXPECT_FALSE(seen.total().any());
  EXPECT_EQ(seen.pid, 8);
  EXPECT_EQ(seen.range_bytes, 2 * kMiB);
}

TEST(HeatTable, ASumIsOverAllRanges) {
  const auto table = std::make_unique<HeatTable>();
  table->start(1);
  table->count(0, Heat::kStore, 3);
  table->count(100 * kMiB, Heat::kStore, 4);
  table->count(100 * kMiB, Heat::kFresh, 1);
  EXPECT_EQ(table->sum(Heat::kStore), 7U);
}

TEST(HeatTable, OneOfZerosWasNeverStarted) {
  const auto table = std::make_unique<HeatTable>();
  EXPECT_EQ(table->read().range_bytes, 0U);
  EXPECT_FALSE(table->read().total().any());
}

TEST(HeatCounts, SinceACountThatBeganAnewIsAllOfIt) {
  HeatCounts before, now;
  before[Heat::kFresh] = 10;
  before[Heat::kStore] = 10;
  now[Heat::kFresh] = 12;
  now[Heat::kStore] = 3;
  const auto since = now.since(before);
  EXPECT_EQ(since[Heat::kFresh], 2U);
  EXPECT_EQ(since[Heat::kStore], 3U);
}

TEST(HeatSnapshot, WidensByAddingNeighbours) {
  HeatTable::Snapshot snapshot;
  snapshot.range_bytes = 2 * kMiB;
  for (std::size_t i = 0; i < HeatTable::kRanges; ++i) snapshot.ranges[i][Heat::kFresh] = i;
  const std::uint64_t sum = snapshot.total().faults();
  snapshot.widen_to(8 * kMiB);
  EXPECT_EQ(snapshot.range_bytes, 8 * kMiB);
  EXPECT_EQ(snapshot.ranges[1][Heat::kFresh], 4U + 5 + 6 + 7);
  EXPECT_EQ(snapshot.total().faults(), sum);
}

}  // namespace
}  // namespace farheap::base
