// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace farheap::plan::placement_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kPage = 4096;
constexpr profile::SiteId kA = 1, kB = 2, kC = 3;

TEST(Placement, PriorityIsAccessesOverBytesWithTheirExponents) {
  EXPECT_DOUBLE_EQ(priority(800, 8, {}), 100);
  EXPECT_DOUBLE_EQ(priority(10, 4, {.alpha = 2, .beta = 0.5}), 50);
  EXPECT_DOUBLE_EQ(priority(10, 4, {.alpha = 1, .beta = 0}), 10);
}

// By hand: A has 100 accesses a page, B 50, C 10. A fits into ten pages, B into the two that are left with its first
// half; C has no room any more.
TEST(Placement, HalvesWhatDoesNotFit) {
  const SiteUse uses[] = {{kC, kPage, 10}, {kB, 4 * kPage, 200}, {kA, 8 * kPage, 800}};
  EXPECT_THAT(choose_kept(uses, 10 * kPage), ElementsAre(KeptPart{kA, 0, 8 * kPage}, KeptPart{kB, 0, 2 * kPage}));
}

// By hand: with beta 2, halves are worth more than wholes. B (600 accesses, 6 pages: 16.7) does not fit into 5 pages;
// its halves (300 accesses, 3 pages: 33.3) come before C (40 accesses, 2 pages: 10). The first one fits. The second one
// does not fit into 2 pages: of its parts (100 accesses, 1 page: 100; 200 accesses, 2 pages: 50) the first is taken,
// and of the other one a page. C is left out.
TEST(Placement, PutsBothHalvesBackWithPrioritiesOfTheirOwn) {
  const SiteUse uses[] = {{kB, 6 * kPage, 600}, {kC, 2 * kPage, 40}};
  EXPECT_THAT(choose_kept(uses, 5 * kPage, {.alpha = 1, .beta = 2}), ElementsAre(KeptPart{kB, 0, 5 * kPage}));
}

// Rounding made the second page of three the better one.
TEST(Placement, PartsOfASiteAreOfOnePriorityAndGoByAddress) {
  const SiteUse three[] = {{kA, 3 * kPage, 5}};
  EXPECT_THAT(choose_kept(three, kPage), ElementsAre(KeptPart{kA, 0, kPage}));
  const SiteUse many[] = {{kA, 99'999 * kPage, 70'000'000}};
  EXPECT_THAT(choose_kept(many, 50'001 * kPage), ElementsAre(KeptPart{kA, 0, 50'001 * kPage}));
}

// Where halves are worth less than wholes, all fell into single pages before one was taken: here 2^28 of them.
TEST(Placement, OfATebibyteIsBoundedWhateverTheExponents) {
  const SiteUse uses[] = {{kA, std::uint64_t{1} << 40, 1'000'000}, {kB, std::uint64_t{1} << 39, 400'000}};
  const std::uint64_t room = std::uint64_t{1} << 38;
  std::uint64_t bytes = 0;
  for (const KeptPart& part : choose_kept(uses, room, {.alpha = 2, .beta = 1})) bytes += part.bytes;
  EXPECT_EQ(bytes, room);
}

TEST(Placement, KeepsNothingWithoutRoomOrUse) {
  const SiteUse uses[] = {{kA, 3 * kPage, 0}, {kB, 0, 100}};
  EXPECT_THAT(choose_kept(uses, 100 * kPage), IsEmpty());
  const SiteUse one[] = {{kA, 3 * kPage, 5}};
  EXPECT_THAT(choose_kept(one, kPage - 1), IsEmpty());
  EXPECT_THAT(choose_kept({}, kPage), IsEmpty());
}

// With both exponents 1 nothing that can be divided is better placed: what a page brings, from the best down.
TEST(Placement, IsTheBestOfWhatCanBeDivided) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<SiteUse> uses(random() % 6);
    std::vector<double> by_page;
    for (std::size_t i = 0; i < uses.size(); ++i) {
      uses[i] = {static_cast<profile::SiteId>(i), (1 + random() % 40) * kPage, 1 + random() % 100'000};
      const std::uint64_t pages = uses[i].bytes / kPage;
      by_page.insert(by_page.end(), pages, static_cast<double>(uses[i].accesses) / static_cast<double>(pages));
    }
    const std::uint64_t room = random() % 100;
    std::ranges::sort(by_page, std::greater());
    by_page.resize(std::min<std::size_t>(by_page.size(), room));
    double best = 0, found = 0;
    for (const double of_page : by_page) best += of_page;
    std::uint64_t bytes = 0;
    for (const KeptPart& part : choose_kept(uses, room * kPage)) {
      const SiteUse& use = uses[part.site];
      ASSERT_LE(part.first + part.bytes, use.bytes);
      bytes += part.bytes;
      found += static_cast<double>(use.accesses) * static_cast<double>(part.bytes) / static_cast<double>(use.bytes);
    }
    EXPECT_EQ(bytes, by_page.size() * kPage);
    EXPECT_NEAR(found, best, best * 1e-9);
  }
}

}  // namespace
}  // namespace farheap::plan::placement_test
