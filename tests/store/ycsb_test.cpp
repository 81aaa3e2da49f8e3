// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/ycsb.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/store/store_fixture.hpp"

namespace farheap::test {
namespace {

using testing::HasSubstr;

TEST(Ycsb, CountsAreThoseOfTheSeed) {
  const auto store = open_or_fail("mem:", {.block_bytes = store::kYcsbBlockBytes});
  const auto done = store::run_ycsb(*store);
  ASSERT_TRUE(done) << done.error().message();
  ASSERT_EQ(done->size(), 3u);
  const auto count = [&](std::size_t workload, const std::string& operation) {
    for (const auto& one : (*done)[workload].latencies) {
      if (one.operation == operation) return one.count;
    }
    return std::uint64_t{0};
  };
  EXPECT_EQ(count(0, "insert"), 1000u);
  EXPECT_EQ(count(1, "read") + count(1, "write"), 1000u);
  EXPECT_NEAR(static_cast<double>(count(1, "read")), 500, 80);  // five standard deviations
  EXPECT_EQ(count(2, "read"), 1000u);                           // those of read-modify-writes are among them
  EXPECT_EQ(count(2, "write"), count(2, "read-modify-write"));
  EXPECT_NEAR(static_cast<double>(count(2, "read-modify-write")), 500, 80);
  for (const auto& workload : *done) {
    EXPECT_GT(workload.operations_per_second, 0) << workload.name;
    for (const auto& one : workload.latencies) {
      EXPECT_LE(one.lower_quartile, one.median);
      EXPECT_LE(one.median, one.upper_quartile);
    }
  }
  EXPECT_EQ(store->usage()->blocks, 0u);  // nothing stays
}

// A store that forgets a write every now and then is found out.
TEST(Ycsb, WrongRecordsAreFound) {
  const auto store = open_or_fail("faulty+mem:?lost=0.01", {.block_bytes = store::kYcsbBlockBytes});
  const auto done = store::run_ycsb(*store);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kCorrupt);
  const auto small = open_or_fail("mem:", {.block_bytes = 512});
  EXPECT_THAT(store::run_ycsb(*small).error().why, HasSubstr("does not fit"));
}

TEST(Ycsb, KeysAreZipfian) {
  store::ZipfianKeys keys(1000, 7);
  std::vector<int> ranks(1000);
  constexpr int kDraws = 200000;
  for (int i = 0; i < kDraws; ++i) ++ranks[keys.next_rank()];
  // 1 / zeta(1000, 0.99) = 0.1293 of all; the second 2^-0.99 of that.
  EXPECT_NEAR(ranks[0], 0.1293 * kDraws, 0.004 * kDraws);
  EXPECT_NEAR(ranks[1], 0.0651 * kDraws, 0.004 * kDraws);
  EXPECT_GT(*std::ranges::min_element(ranks), 0);
  store::ZipfianKeys one(1000, 7), two(1000, 7);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(one.next(), two.next());
}

}  // namespace
}  // namespace farheap::test
