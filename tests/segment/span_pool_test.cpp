// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/span_pool.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <vector>

namespace farheap::segment {
namespace {

TEST(SpanPool, PiecesKeepTheirBytesWhereverTheyAreMoved) {
  struct Piece {
    SpanPool::Place place;
    std::size_t bytes;
  };
  SpanPool pool = SpanPool::make(4 << 20).value();
  std::map<SpanPool::Owner, Piece> pieces;
  std::mt19937_64 random(1);
  const auto fill = [](SpanPool::Owner owner) { return static_cast<int>(owner % 251 + 1); };
  SpanPool::Owner next = 1;
  std::size_t moved = 0;
  for (int step = 0; step < 40'000; ++step) {
    // It fills, and empties again to almost nothing.
    const bool takes = random() % 100 < (step / 5000 % 2 == 0 ? 60 : 42);
    if (takes) {
      const std::size_t bytes = 1 + random() % SpanPool::kMostBytes;
      const SpanPool::Place place = pool.take(bytes, next);
      if (place == 0) continue;  // full
      std::memset(pool.at(place), fill(next), bytes);
      pieces[next++] = {place, bytes};
    } else if (!pieces.empty()) {
      auto one = pieces.lower_bound(static_cast<SpanPool::Owner>(random() % next));
      if (one == pieces.end()) one = pieces.begin();
      pool.give_back(one->second.place);
      pieces.erase(one);
    }
    if (step % 50 == 0 && pool.taken_bytes() < pool.held_bytes() / 2) {
      moved +=
          pool.move_together([&](SpanPool::Owner owner, SpanPool::Place place) { pieces.at(owner).place = place; });
      pool.drop_empty(1);
    }
    ASSERT_LE(pool.taken_bytes(), pool.held_bytes());
  }
  EXPECT_GT(moved, 0u) << "nothing was ever moved: the test tested nothing";
  std::size_t taken = 0;
  for (const auto& [owner, piece] : pieces) {
    const std::vector<std::byte> expected(piece.bytes, static_cast<std::byte>(fill(owner)));
    ASSERT_EQ(std::memcmp(pool.at(piece.place), expected.data(), piece.bytes), 0) << owner;
    taken += (piece.bytes + SpanPool::kHeader + SpanPool::kStep - 1) / SpanPool::kStep * SpanPool::kStep;
  }
  EXPECT_EQ(pool.taken_bytes(), taken);
}

TEST(SpanPool, AllThatIsGivenBackIsDropped) {
  SpanPool pool = SpanPool::make(1 << 20).value();
  std::vector<SpanPool::Place> places;
  for (SpanPool::Place place; (place = pool.take(1000, 7)) != 0;) places.push_back(place);
  EXPECT_GE(pool.held_bytes(), std::size_t{1} << 20) << "its capacity is rounded up";
  for (const auto place : places) pool.give_back(place);
  pool.drop_empty(0);
  EXPECT_EQ(pool.held_bytes(), 0u);
  EXPECT_EQ(pool.taken_bytes(), 0u);
  EXPECT_NE(pool.take(1000, 7), 0u) << "what was dropped can be used again";
}

}  // namespace
}  // namespace farheap::segment
