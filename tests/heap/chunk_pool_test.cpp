// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "heap/chunk_pool.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "spy_space.hpp"

namespace farheap::heap {
namespace {

TEST(ChunkPool, NeighboursInTimeAreNeighboursInMemory) {
  SpySpace space;
  ChunkPool pool(space);
  std::size_t first = pool.obtain(1);
  for (std::size_t i = 1; i < 2 * kGranulesPerChunk; ++i) ASSERT_EQ(pool.obtain(1), first + i);
  EXPECT_EQ(space.obtained, 2 * kChunkBytes);
}

TEST(ChunkPool, GivesBackAllButAFewEmptyChunks) {
  SpySpace space;
  ChunkPool pool(space);
  std::vector<std::size_t> granules;
  for (std::size_t i = 0; i < 10 * kGranulesPerChunk; ++i) granules.push_back(pool.obtain(1));
  EXPECT_EQ(space.held(), 10 * kChunkBytes);
  for (std::size_t granule : granules) pool.give_back(granule, 1);
  EXPECT_EQ(space.held(), ChunkPool::kKeptEmpty * kChunkBytes);
  EXPECT_EQ(pool.used_bytes(), 0u);
  EXPECT_LE(pool.dirty_bytes(), ChunkPool::kDirtyAlways * kGranuleBytes);
  pool.purge();
  EXPECT_EQ(space.held(), 0u);
}

TEST(ChunkPool, DropsThePagesOfScatteredFreeGranules) {
  SpySpace space;
  ChunkPool pool(space);
  std::vector<std::size_t> granules;
  for (std::size_t i = 0; i < 20 * kGranulesPerChunk; ++i) granules.push_back(pool.obtain(1));
  for (std::size_t i = 0; i < granules.size(); i += 2) pool.give_back(granules[i], 1);
  std::size_t freed = granules.size() / 2 * kGranuleBytes;
  EXPECT_LE(pool.dirty_bytes(), ChunkPool::kDirtyAlways * kGranuleBytes);
  EXPECT_EQ(space.discarded + pool.dirty_bytes(), freed);
  pool.purge();
  EXPECT_EQ(pool.dirty_bytes(), 0u);
  EXPECT_EQ(space.discarded, freed);
}

TEST(ChunkPool, UsesAgainWhatIsStillInMemory) {
  SpySpace space;
  ChunkPool pool(space);
  for (int i = 0; i < 8; ++i) (void)pool.obtain(1);
  pool.give_back(3, 1);
  pool.give_back(6, 2);
  EXPECT_EQ(pool.dirty_bytes(), 3 * kGranuleBytes);
  EXPECT_EQ(pool.obtain(2), 6u);
  EXPECT_EQ(pool.obtain(1), 3u);
  EXPECT_EQ(pool.obtain(1), 8u);
}

TEST(ChunkPool, SaysWhenTheSpaceIsFull) {
  SpySpace space(2 * kChunkBytes);
  ChunkPool pool(space);
  for (std::size_t i = 0; i < 2 * kGranulesPerChunk; ++i) ASSERT_NE(pool.obtain(1), ChunkPool::kNone);
  EXPECT_EQ(pool.obtain(1), ChunkPool::kNone);
}

// What couples of threads do that pass objects to each other: all that is on its way is taken, and then given back.
class ChunkPoolTide : public testing::Test {
 protected:
  static constexpr std::size_t kOnTheWay = 5 * ChunkPool::kDirtyAlways;  // granules: 40 MiB

  void tide(std::size_t granules = kOnTheWay) {
    std::vector<std::size_t> taken;
    for (std::size_t i = 0; i < granules; ++i) taken.push_back(pool_.obtain(1));
    for (std::size_t granule : taken) pool_.give_back(granule, 1);
  }
  [[nodiscard]] std::size_t dropped() const { return space_.discarded + space_.given_back; }

  SpySpace space_;
  ChunkPool pool_{space_};
};

// With 8 MiB for all threads of a program, eight couples that passed 64 MiB had 2.3 million page faults for 16 million
// objects.
TEST_F(ChunkPoolTide, WhatWasDroppedInVainWaitsTheNextTime) {
  pool_.serve(8);
  tide();
  const std::size_t at_first = dropped();
  EXPECT_GT(at_first, 0u);
  tide();
  const std::size_t learnt = dropped();
  for (int i = 0; i < 10; ++i) tide();
  EXPECT_EQ(dropped(), learnt);
  EXPECT_EQ(pool_.dirty_bytes(), kOnTheWay * kGranuleBytes);
}

TEST_F(ChunkPoolTide, AThreadKeepsNoMoreThanItsShare) {
  for (std::size_t threads : {1, 3}) {
    pool_.serve(threads);
    for (int i = 0; i < 10; ++i) tide();
    EXPECT_LE(pool_.dirty_bytes(), threads * ChunkPool::kDirtyAlways * kGranuleBytes);
    EXPECT_LE(space_.held(), (threads * ChunkPool::kKeptEmpty + 1) * kChunkBytes);
  }
}

TEST_F(ChunkPoolTide, ThreadsThatEndLeaveNoMoreThanTheOthersMayKeep) {
  pool_.serve(8);
  for (int i = 0; i < 3; ++i) tide();
  ASSERT_GT(pool_.dirty_bytes(), 2 * ChunkPool::kDirtyAlways * kGranuleBytes);
  pool_.serve(2);
  EXPECT_LE(pool_.dirty_bytes(), 2 * ChunkPool::kDirtyAlways * kGranuleBytes);
}

TEST_F(ChunkPoolTide, WhatNobodyTakesDoesNotWaitForEver) {
  pool_.serve(8);
  for (int i = 0; i < 3; ++i) tide();
  ASSERT_EQ(pool_.dirty_bytes(), kOnTheWay * kGranuleBytes);
  for (std::size_t i = 0; i < 100 * kOnTheWay; ++i) tide(1);
  EXPECT_LE(pool_.dirty_bytes(), ChunkPool::kDirtyAlways * kGranuleBytes);
}

TEST_F(ChunkPoolTide, NothingIsLearntFromAPurge) {
  pool_.serve(8);
  for (int i = 0; i < 20; ++i) {
    tide(ChunkPool::kDirtyAlways / 2);
    pool_.purge();
  }
  tide();
  EXPECT_LE(pool_.dirty_bytes(), ChunkPool::kDirtyAlways * kGranuleBytes);
}

struct Row {
  std::size_t first;
  unsigned count;
};

TEST(ChunkPool, RowsOfAnyLengthNeverOverlap) {
  SpySpace space;
  ChunkPool pool(space);
  std::mt19937 random(3);
  std::vector<bool> taken(4096);
  std::vector<Row> rows;
  std::size_t used = 0;
  for (int step = 0; step < 100'000; ++step) {
    bool give = !rows.empty() && random() % (step / 10'000 % 2 == 0 ? 3 : 2) == 0;
    if (rows.size() > 300) give = true;
    if (give) {
      std::swap(rows[random() % rows.size()], rows.back());
      Row row = rows.back();
      rows.pop_back();
      for (unsigned i = 0; i < row.count; ++i) taken[row.first + i] = false;
      used -= row.count;
      pool.give_back(row.first, row.count);
    } else {
      Row row{0, 1 + static_cast<unsigned>(random() % 8)};
      row.first = pool.obtain(row.count);
      ASSERT_NE(row.first, ChunkPool::kNone);
      ASSERT_EQ(row.first / kGranulesPerChunk, (row.first + row.count - 1) / kGranulesPerChunk);
      for (unsigned i = 0; i < row.count; ++i) {
        ASSERT_FALSE(taken[row.first + i]);
        taken[row.first + i] = true;
      }
      used += row.count;
      rows.push_back(row);
    }
    ASSERT_EQ(pool.used_bytes(), used * kGranuleBytes);
  }
}

}  // namespace
}  // namespace farheap::heap
