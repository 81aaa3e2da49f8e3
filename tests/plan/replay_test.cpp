// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pager, driven by orders of uses: beside the optimum and LRU; and told from a sample beside the whole order.
#include "plan/replay.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "plan/lru.hpp"
#include "plan/optimum.hpp"
#include "plan/pager_curve.hpp"
#include "profile/page_sampler.hpp"

namespace farheap::plan::replay_test {
namespace {

using profile::PageEvent;

constexpr std::uint64_t kPage = 4096;

struct Program {
  void use(std::uint32_t page) {
    if (page >= known.size()) known.resize(page + 1);
    touches.push_back({.page = page, .write = !known[page]});
    all.uses.push_back({page, !known[page], false});
    all.pages = std::max(all.pages, page + 1);
    if (profile::is_sampled(page, sample.one_in_log2)) {
      sample.words.push_back(profile::pack({page, known[page] ? PageEvent::kCame : PageEvent::kCameFresh}));
    }
    if (!known[page]) ++sample.pages;
    known[page] = true;
  }
  void sweep(std::uint32_t pages, int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (std::uint32_t page = 0; page < pages; ++page) use(page);
    }
  }
  [[nodiscard]] std::uint64_t reads(std::uint64_t memory) const {
    return replay(touches, known.size(), memory).pages_read;
  }
  std::vector<ReplayedTouch> touches;
  Uses all;
  profile::Touches sample{.one_in_log2 = 6};
  std::vector<bool> known;
};

TEST(Replay, WithAllTheMemoryNothingIsRead) {
  Program program;
  program.sweep(4000, 4);
  const ReplayCounts counts = replay(program.touches, 4000, 8000);
  EXPECT_EQ(counts.pages_read, 0u);
  EXPECT_EQ(counts.pages_written, 0u);
}

TEST(Replay, OfASweepLiesBetweenTheOptimumAndLeastRecentlyUsed) {
  Program program;
  program.sweep(8000, 8);
  constexpr std::uint64_t kMemory = 8000 * 7 / 10;
  EXPECT_GE(program.reads(kMemory), optimum(program.all, kMemory).pages_read);
  EXPECT_LT(program.reads(kMemory), lru_reads(program.all, kMemory) * 3 / 4);
}

TEST(Replay, OfUsesAtRandomReadsAboutWhatIsMissing) {
  Program program;
  program.sweep(16'000, 1);
  std::mt19937 random(1);
  for (int i = 0; i < 120'000; ++i) program.use(random() % 16'000);
  EXPECT_NEAR(static_cast<double>(program.reads(8'000)), 120'000 / 2.0, 12'000);
}

TEST(Replay, WhatIsDroppedIsNotReadAgain) {
  std::vector<ReplayedTouch> touches;
  for (int round = 0; round < 4; ++round) {
    for (std::uint32_t page = 0; page < 4000; ++page) touches.push_back({.page = page, .write = true});
    for (std::uint32_t page = 0; page < 4000; ++page) touches.push_back({.page = page, .drop = true});
  }
  EXPECT_EQ(replay(touches, 4000, 2000).pages_read, 0u);
}

// The clock is the replay's own: nothing is timed here.
TEST(Replay, ByTheClockAProgramIsAsSlowAsItsWorkOrItsStoreAtLeast) {
  Program program;
  program.sweep(8000, 8);
  constexpr std::uint64_t kMemory = 8000 * 7 / 10;
  for (const double page : {1e-6, 4e-6, 20e-6}) {
    const ReplayClock clock{.use = 2e-6, .page = page, .request = 50e-6};
    const ReplayCounts counts = replay(program.touches, 8000, kMemory, {.clock = clock});
    const double work = 64'000 * clock.use;
    const double store = static_cast<double>(counts.pages_read + counts.pages_written) * page;
    EXPECT_GE(counts.seconds, std::max(work, store) * 0.99) << page;
    EXPECT_LE(counts.seconds, work + store + static_cast<double>(counts.reads + counts.reads_ahead) * clock.request);
    EXPECT_GE(counts.pages_read, optimum(program.all, kMemory).pages_read);
  }
  EXPECT_NEAR(replay(program.touches, 8000, 16'000, {.clock = {.use = 2e-6, .page = 1e-6}}).seconds, 0.128, 0.001);
}

// The reader of an order has its pages in memory before the program needs them, as long as the store keeps up.
TEST(Replay, WhoKnowsTheOrderWaitsForLittle) {
  Program program;
  program.sweep(8000, 8);
  constexpr std::uint64_t kMemory = 8000 * 7 / 10;
  auto order = std::make_shared<pager::PageOrder>(64);
  for (const ReplayedTouch& touch : program.touches) order->add_use(touch.page);
  order->finish();
  const ReplayClock clock{.use = 2e-6, .page = 1e-6, .request = 500e-6};
  const ReplayCounts alone = replay(program.touches, 8000, kMemory, {.clock = clock});
  const ReplayCounts told = replay(program.touches, 8000, kMemory, {.orders = {order}, .clock = clock});
  const double work = 64'000 * clock.use;
  EXPECT_LT(told.seconds - work, (alone.seconds - work) / 2) << told.seconds << " " << alone.seconds;
  EXPECT_GT(told.as_expected, 100u);
}

// The program touched a page that was to leave at once, as it was needed last: by a replay that let it leave before the
// touch was done it came and left for ever.
TEST(Replay, WhatIsNeededLastIsTouchedBeforeItLeaves) {
  Program program;
  program.sweep(4000, 2);
  auto order = std::make_shared<pager::PageOrder>(1);
  for (std::uint32_t page = 4000; page-- > 0;) order->add_use(page);  // it is wrong
  order->finish();
  const ReplayCounts counts =
      replay(program.touches, 4000, 600, {.orders = {order}, .clock = {.use = 1e-6, .page = 1e-6, .request = 1e-5}});
  EXPECT_LE(counts.pages_read, 8000u + 600);
}

// Forwards over one half again and again, and backwards over the other one then.
TEST(Replay, WithThePhasesOfAPlanLessIsReadThanWithItsFirstAlone) {
  Program program;
  constexpr std::uint32_t kHalf = 4000, kMemory = 2600, kBlock = pager::PageOrder::kBlockPages;
  for (int round = 0; round < 10; ++round) program.sweep(kHalf, 1);
  for (int round = 0; round < 10; ++round) {
    for (std::uint32_t page = 2 * kHalf; page-- > kHalf;) program.use(page);
  }
  const auto order = [&](std::uint32_t first, bool backward) {
    auto made = std::make_shared<pager::PageOrder>(kBlock);
    constexpr std::uint32_t kBlocks = kHalf / kBlock;
    for (std::uint32_t i = 0; i < kBlocks; ++i) {
      const pager::PageOrder::Moment begin = pager::PageOrder::Moment{i} * kBlock;
      made->add_visit({.block = first / kBlock + (backward ? kBlocks - 1 - i : i),
                       .first = begin,
                       .last = begin + kBlock - 1,
                       .first_page = backward ? kBlock - 1 : 0});
    }
    made->finish(0, kHalf);
    return made;
  };
  const auto reads = [&](std::vector<std::shared_ptr<const pager::PageOrder>> orders) {
    return replay(program.touches, 2 * kHalf, kMemory, {.orders = std::move(orders)}).pages_read;
  };
  const std::uint64_t none = reads({}), first = reads({order(0, false)});
  const std::uint64_t both = reads({order(0, false), order(kHalf, true)});
  EXPECT_LT(first, none);
  EXPECT_LT(both, first);
}

TEST(PagerCurve, OfASampleIsNearThatOfAllUses) {
  std::mt19937 random(2);
  for (const bool sweeps : {true, false}) {
    Program program;
    constexpr std::uint32_t kPages = 24'000;
    program.sweep(kPages, sweeps ? 6 : 1);
    for (int i = 0; !sweeps && i < 200'000; ++i) program.use(random() % kPages);
    const MemoryCurve curve = memory_curve(program.sample, 6);
    const std::vector<PagerPrediction> reads = pager_curve(program.sample, curve);
    ASSERT_EQ(reads.size(), curve.points.size());
    double sum = 0;
    for (std::size_t i = 0; i + 1 < reads.size(); ++i) {  // with all of it nothing is paged: told, not driven
      const auto exact = static_cast<double>(program.reads(curve.points[i].memory_bytes / kPage));
      sum += std::abs(reads[i].reads - exact) / static_cast<double>(program.all.uses.size());
    }
    EXPECT_LT(sum / static_cast<double>(reads.size() - 1), sweeps ? 0.02 : 0.08) << (sweeps ? "sweeps" : "at random");
    EXPECT_EQ(reads.back().reads, 0);
    EXPECT_EQ(reads.front().seconds, 0) << "no speeds were told";
  }
}

TEST(PagerCurve, OfALongRecordingIsToldInASmallerWorld) {
  Program program;
  program.sample.one_in_log2 = 0;
  program.sweep(400, 100);
  profile::Touches longer = program.sample;
  longer.one_in_log2 = 14;  // 16,384 pages each: 40,000 uses of so many would take long
  longer.pages <<= 14;
  const MemoryCurve curve = memory_curve(longer, 4);
  const std::vector<PagerPrediction> reads = pager_curve(longer, curve);
  ASSERT_EQ(reads.size(), 4u);
  EXPECT_GT(reads[0].reads, curve.points[0].best_misses * 0.95);
  EXPECT_LT(reads[0].reads, curve.points[0].lru_misses * 1.05);
  EXPECT_EQ(reads[3].reads, 0);
}

TEST(PagerCurve, OfNothingIsNothing) { EXPECT_TRUE(pager_curve({}, memory_curve({})).empty()); }

}  // namespace
}  // namespace farheap::plan::replay_test
