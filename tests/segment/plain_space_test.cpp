// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/plain_space.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "base/units.hpp"
#include "tests/words.hpp"

namespace farheap::segment {
namespace {

using base::kMiB;
using base::kPageBytes;

[[nodiscard]] bool all_zero(const std::byte* at, std::size_t bytes) { return test::repeats_word(at, bytes, 0); }
[[nodiscard]] std::size_t resident_pages(std::byte* at, std::size_t bytes) {
  std::vector<unsigned char> pages(bytes / kPageBytes);
  EXPECT_EQ(mincore(at, bytes, pages.data()), 0);
  return static_cast<std::size_t>(std::count_if(pages.begin(), pages.end(), [](auto page) { return page & 1; }));
}

TEST(PlainSpace, PagesReadAsZerosAtFirstAndWhenTheyComeAgain) {
  PlainSpace space(64 * kMiB);
  ASSERT_TRUE(space.status());
  std::byte* run = space.obtain(4 * kMiB, kPageBytes);
  ASSERT_NE(run, nullptr);
  EXPECT_TRUE(all_zero(run, 4 * kMiB));
  std::memset(run, 0x5a, 4 * kMiB);
  space.discard(run + kMiB, kMiB);
  EXPECT_TRUE(all_zero(run + kMiB, kMiB));
  EXPECT_EQ(run[kMiB - 1], std::byte{0x5a});
  EXPECT_EQ(run[2 * kMiB], std::byte{0x5a});
  space.give_back(run, 4 * kMiB);
  std::byte* again = space.obtain(4 * kMiB, kPageBytes);
  ASSERT_EQ(again, run);
  EXPECT_TRUE(all_zero(again, 4 * kMiB));
}

TEST(PlainSpace, GivesMemoryBack) {
  PlainSpace space(64 * kMiB);
  std::byte* run = space.obtain(8 * kMiB, base::kHugePageBytes);
  std::memset(run, 1, 8 * kMiB);
  EXPECT_EQ(resident_pages(run, 8 * kMiB), 8 * kMiB / kPageBytes);
  space.discard(run, 2 * kMiB);
  EXPECT_EQ(resident_pages(run, 8 * kMiB), 6 * kMiB / kPageBytes);
  space.give_back(run, 8 * kMiB);
  EXPECT_EQ(resident_pages(run, 8 * kMiB), 0u);
}

TEST(PlainSpace, ExtendsInPlace) {
  PlainSpace space(64 * kMiB);
  std::byte* run = space.obtain(kMiB, kPageBytes);
  std::memset(run, 7, kMiB);
  ASSERT_TRUE(space.extend(run, kMiB, 60 * kMiB)) << "past what was usable so far";
  EXPECT_EQ(run[kMiB - 1], std::byte{7});
  EXPECT_TRUE(all_zero(run + kMiB, 59 * kMiB));
  std::memset(run, 7, 60 * kMiB);
  EXPECT_FALSE(space.extend(run, 60 * kMiB, 65 * kMiB));
}

TEST(PlainSpace, SaysSoWhenItIsFull) {
  PlainSpace space(4 * kMiB);
  EXPECT_EQ(space.obtain(5 * kMiB, kPageBytes), nullptr);
  EXPECT_NE(space.obtain(4 * kMiB, kPageBytes), nullptr);
  EXPECT_EQ(space.obtain(kPageBytes, kPageBytes), nullptr);
}

TEST(PlainSpace, SaysWhyAnImpossibleReservationFailed) {
  PlainSpace space(std::size_t{1} << 60);
  ASSERT_FALSE(space.status());
  EXPECT_EQ(space.status().error().what, "cannot reserve addresses");
  EXPECT_EQ(space.base(), nullptr);
  EXPECT_EQ(space.obtain(kPageBytes, kPageBytes), nullptr);
}

TEST(PlainSpace, ServesThreadsAtOnce) {
  PlainSpace space(256 * kMiB);
  auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::pair<std::byte*, std::size_t>> runs;
    for (int i = 0; i < 3000; ++i) {
      if (runs.size() > 40 || (!runs.empty() && random() % 2 == 0)) {
        std::swap(runs[random() % runs.size()], runs.back());
        auto [at, bytes] = runs.back();
        runs.pop_back();
        EXPECT_EQ(at[0], static_cast<std::byte>(seed));
        EXPECT_EQ(at[bytes - 1], static_cast<std::byte>(seed));
        space.give_back(at, bytes);
      } else {
        std::size_t bytes = (1 + random() % 64) * kPageBytes;
        std::byte* at = space.obtain(bytes, kPageBytes);
        ASSERT_NE(at, nullptr);
        EXPECT_EQ(at[0], std::byte{0});
        EXPECT_EQ(at[bytes - 1], std::byte{0});
        at[0] = at[bytes - 1] = static_cast<std::byte>(seed);
        runs.emplace_back(at, bytes);
      }
    }
  };
  std::thread first(work, 1);
  std::thread second(work, 2);
  work(3);
  first.join();
  second.join();
}

}  // namespace
}  // namespace farheap::segment
