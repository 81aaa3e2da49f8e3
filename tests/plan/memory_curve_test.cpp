// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The curve of a sample beside what it is a sample of.
#include "plan/memory_curve.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "plan/lru.hpp"
#include "plan/optimum.hpp"
#include "profile/page_sampler.hpp"

namespace farheap::plan::memory_curve_test {
namespace {

using pager::PageNumber;
using profile::PageEvent;

constexpr std::uint64_t kPage = 4096;

// The uses of pages below `pages`, and those of the sample as the sampler would write them.
struct Program {
  explicit Program(std::uint32_t log2) { touches.one_in_log2 = log2; }
  void use(PageNumber page) {
    if (page >= known.size()) known.resize(page + 1);
    all.uses.push_back({static_cast<std::uint32_t>(page), !known[page], false});
    all.pages = std::max<std::uint32_t>(all.pages, static_cast<std::uint32_t>(page) + 1);
    if (profile::is_sampled(page, touches.one_in_log2)) {
      touches.words.push_back(profile::pack({page, known[page] ? PageEvent::kCame : PageEvent::kCameFresh}));
    }
    if (!known[page]) ++touches.pages;
    known[page] = true;
  }
  Uses all;
  profile::Touches touches;
  std::vector<bool> known;
};

double mean_error(const Program& program, const MemoryCurve& curve) {
  double sum = 0;
  for (const MemoryPoint& point : curve.points) {
    const auto exact = static_cast<double>(lru_reads(program.all, point.memory_bytes / kPage));
    sum += std::abs(point.lru_misses - exact) / static_cast<double>(program.all.uses.size());
  }
  return sum / static_cast<double>(curve.points.size());
}

TEST(MemoryCurve, OfASweepHasItsStepWhereTheSweepFits) {
  Program program(6);
  constexpr PageNumber kPages = 20'000;
  for (int round = 0; round < 5; ++round) {
    for (PageNumber page = 0; page < kPages; ++page) program.use(page);
  }
  const MemoryCurve curve = memory_curve(program.touches);
  ASSERT_EQ(curve.points.size(), 20u);
  EXPECT_EQ(curve.whole_bytes / kPage, kPages) << "the number of pages is known, not drawn";
  EXPECT_EQ(curve.points.back().lru_misses, 0);
  EXPECT_NEAR(curve.points[10].lru_misses, 4.0 * kPages, 1);
  EXPECT_LT(mean_error(program, curve), 0.01);
  // An oracle keeps most of what fits.
  EXPECT_NEAR(curve.points[9].best_misses, 4.0 * kPages / 2, kPages * 0.2);
}

TEST(MemoryCurve, OfHotAndColdPagesIsNearTheExactOne) {
  Program program(4);
  std::mt19937_64 random(7);
  constexpr PageNumber kPages = 16'000;
  for (int i = 0; i < 400'000; ++i) {
    const double dice = static_cast<double>(random() % 1'000'000) / 1e6;
    program.use(static_cast<PageNumber>(std::pow(dice, 4) * kPages));  // the first pages far more often
  }
  const MemoryCurve curve = memory_curve(program.touches);
  ASSERT_GT(curve.points.size(), 10u);
  EXPECT_LT(mean_error(program, curve), 0.03);
  for (const MemoryPoint& point : curve.points) EXPECT_LE(point.best_misses, point.lru_misses);
}

TEST(MemoryCurve, WithWhatWasDroppedNeedsOnlyWhatIsThereAtOnce) {
  Program program(4);
  constexpr PageNumber kPages = 4'000;
  for (int round = 0; round < 4; ++round) {
    for (PageNumber page = 0; page < kPages; ++page) program.use(page);
    for (PageNumber page = 0; page < kPages; ++page) {
      if (profile::is_sampled(page, 4)) program.touches.words.push_back(profile::pack({page, PageEvent::kDropped}));
      program.known[page] = false;
    }
  }
  const MemoryCurve curve = memory_curve(program.touches);
  EXPECT_NEAR(static_cast<double>(curve.whole_bytes / kPage), kPages, kPages * 0.05);
  for (const MemoryPoint& point : curve.points) EXPECT_EQ(point.lru_misses, 0) << "nothing of it is needed again";
}

TEST(MemoryCurve, OfTooLittleSaysNothing) {
  EXPECT_TRUE(memory_curve({}).points.empty());
  Program program(0);
  for (PageNumber page = 0; page < 5; ++page) program.use(page);
  EXPECT_TRUE(memory_curve(program.touches).points.empty());
}

// Whatever stands in a file that somebody else wrote.
TEST(MemoryCurve, OfAnyWordsIsFinite) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    profile::Touches touches;
    touches.one_in_log2 = random() % 64;
    touches.window = random();
    touches.pages = random() % 3 == 0 ? 0 : random();
    for (unsigned i = 0; i < random() % 2000; ++i) touches.words.push_back(random());
    for (const MemoryPoint& point : memory_curve(touches).points) {
      EXPECT_TRUE(std::isfinite(point.lru_misses) && std::isfinite(point.best_misses));
    }
  }
}

}  // namespace
}  // namespace farheap::plan::memory_curve_test
