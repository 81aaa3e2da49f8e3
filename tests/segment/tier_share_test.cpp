// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the share of the compressed tier follows what it saves, in a model of a program: `packed` pages leave, and some
// are touched again.
#include "segment/tier_share.hpp"

#include <gtest/gtest.h>

#include <random>

namespace farheap::segment {
namespace {

constexpr std::uint64_t kMemory = 16'384;
constexpr double kRatio = 3;

std::uint64_t held(const TierShare& share, double filled) {
  return static_cast<std::uint64_t>(static_cast<double>(share.pages()) * filled);
}

// The tier uses `filled` of what it may take. A program that touches each of `pages` pages equally often: of those that
// are not in view, the tier has the latest.
std::uint64_t share_under_uniform_touches(std::uint64_t pages, double read_us, double ratio = kRatio,
                                          double filled = 1) {
  TierShare share;
  share.memory_is(kMemory, 0);
  for (int i = 0; i < 200; ++i) share.read_took(read_us);
  std::mt19937_64 random(1);
  for (int round = 0; round < 400'000; ++round) {
    const std::uint64_t in_view = kMemory - held(share, filled);
    const auto in_tier = static_cast<std::uint64_t>(static_cast<double>(held(share, filled)) * ratio);
    const std::uint64_t out = pages - in_view;
    const auto age = static_cast<std::uint32_t>(random() % out);  // how many left after it
    (void)share.stamp();
    if (share.pages() != 0) share.packed(5);
    age < in_tier ? share.touched(age) : share.missed(age);
    share.spilled();
    share.look(in_tier, held(share, filled), static_cast<std::uint32_t>(in_tier));
  }
  return share.pages();
}

TEST(TierShare, ItGrowsWhereReadsOfTheStoreAreWhatItSaves) {
  EXPECT_GT(share_under_uniform_touches(2 * kMemory, 80), kMemory / 3);
}

// A part of it is kept free for what comes next.
TEST(TierShare, ItGrowsThoughItIsNeverQuiteFull) {
  EXPECT_GT(share_under_uniform_touches(2 * kMemory, 80, kRatio, 0.875), kMemory / 3);
}

TEST(TierShare, BesideAFastStoreItTakesNothing) {
  EXPECT_LE(share_under_uniform_touches(2 * kMemory, 4), kMemory / 16);
}

// It took a third of memory, and made a run 1.4 times as long.
TEST(TierShare, WherePagesHardlyShrinkItTakesNothing) {
  EXPECT_LE(share_under_uniform_touches(2 * kMemory, 55, 1.4), kMemory / 16);
}

// It was allowed half of memory, and nothing left it that told that less would do.
TEST(TierShare, ItMayTakeLittleMoreThanItUses) {
  TierShare share;
  share.memory_is(kMemory, 0);
  constexpr std::uint64_t kUsed = 2000;
  for (int i = 0; i < 400'000; ++i) {
    (void)share.stamp();
    share.packed(5);
    share.touched(100'000);
    share.missed(10);
    if (share.pages() <= kUsed) share.spilled();
    share.look(kUsed * 3, std::min(kUsed, share.pages()), 100'000);
  }
  EXPECT_GE(share.pages(), kUsed);
  EXPECT_LE(share.pages(), kUsed + kMemory / 16);
}

TEST(TierShare, WhereNothingComesBackItTakesNothing) {
  TierShare share;
  share.memory_is(kMemory, 0);
  std::uint64_t held = 0, looks = 0;
  for (int i = 0; i < 400'000; ++i) {
    (void)share.stamp();
    if (share.pages() != 0) share.packed(5);
    share.missed(kMemory * 8);
    share.look(share.pages() * 3, share.pages(), 3000);
    held += share.pages(), ++looks;
  }
  EXPECT_LT(held / looks, kMemory / 32) << "it is tried now and then, and no more";
}

// By its own growth it had less than the least left, gave all back, and began anew, again and again.
TEST(TierShare, ItNeverGrowsIntoWhatIsNotItsOwn) {
  constexpr std::uint64_t kLeast = 2048, kAll = 3600;
  TierShare share;
  share.memory_is(kAll, kLeast);
  for (int i = 0; i < 200'000; ++i) {
    (void)share.stamp();
    share.packed(5);
    share.missed(1);
    share.touched(kMemory);
    share.spilled();
    share.look(share.pages() * 3, share.pages(), static_cast<std::uint32_t>(share.pages() * 3));
    ASSERT_GT(kAll - share.pages(), kLeast);
  }
  EXPECT_GT(share.pages(), 512u);
  const std::uint64_t grown = share.pages();
  share.memory_is(0, kLeast);
  EXPECT_EQ(share.pages(), 0u);
  share.memory_is(kAll, kLeast);
  EXPECT_EQ(share.pages(), grown) << "what it has learnt it knows again";
}

TEST(TierShare, AgesGoRoundWithTheirStamps) {
  TierShare share;
  const std::uint32_t first = share.stamp();
  EXPECT_EQ(first, 1u);
  for (int i = 0; i < 10; ++i) (void)share.stamp();
  EXPECT_EQ(share.age_of(first), 10u);
  EXPECT_EQ(share.age_of((std::uint32_t{1} << 31) - 5), 16u);  // from before the clock went round
}

}  // namespace
}  // namespace farheap::segment
