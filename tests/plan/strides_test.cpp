// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs that are made up go across an object with a stride; what a plan says of it is held beside what they do.
#include "plan/strides.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "plan/planned_order.hpp"
#include "seen_program.hpp"

namespace farheap::plan {
namespace {

using pager::PageOrder;

// A box of planes that lie one behind the other.
struct Box {
  std::uint64_t planes, pages;  // of each
  [[nodiscard]] Object object(PageNumber first = 0) const { return {first, planes * pages}; }
};

void columns(const Box& box, const UsePage& use, PageNumber first = 0) {
  for (std::uint64_t page = 0; page < box.pages; ++page) {
    for (std::uint64_t plane = 0; plane < box.planes; ++plane) use(first + plane * box.pages + page);
  }
}

// The uses of one page in 2^log2, as a sampler would have seen them.
ObjectLife seen_life(const Object& object, std::uint32_t log2, const std::function<void(const UsePage&)>& run) {
  ObjectLife life{.first = object.first * kPage, .bytes = object.pages * kPage, .uses = {}};
  std::uint32_t now = 0;
  run([&](PageNumber page) {
    if (profile::is_sampled(page, log2)) life.uses[page * kPage + kPage / 2].push_back(now++);
  });
  return life;
}

std::size_t uses_of(const ObjectLife& life) {
  std::size_t sum = 0;
  for (const auto& [byte, times] : life.uses) sum += times.size();
  return sum;
}

TEST(Strides, ColumnsAreFoundWhateverTheBoxIs) {
  for (const Box box : {Box{256, 64}, Box{64, 256}, Box{100, 77}, Box{31, 500}, Box{1000, 33}}) {
    for (const std::uint32_t log2 : {0u, 4u, 6u}) {
      const std::string what =
          std::to_string(box.planes) + " planes of " + std::to_string(box.pages) + ", one in 2^" + std::to_string(log2);
      ObjectLife life = seen_life(box.object(77), log2, [&](const UsePage& use) { columns(box, use, 77); });
      const auto uses = static_cast<std::uint32_t>(uses_of(life));
      const auto found = take_strided(life, std::max(uses / 16, 8u));
      ASSERT_EQ(found.size(), 1u) << what;
      EXPECT_EQ(found.front().repeats, box.planes) << what;
      EXPECT_EQ(uses_of(life), 0u) << what;
      EXPECT_EQ(found.front().begin, 0u);
      EXPECT_EQ(found.front().end, uses);
      EXPECT_GT(found.front().foreseen.share(), 0.8) << what;
      const auto& times = found.front().times;
      for (std::size_t i = 0; i < times.size(); ++i) {
        const double expected = (static_cast<double>(i) + 0.5) / static_cast<double>(times.size()) * uses;
        EXPECT_NEAR(times[i], expected, uses / 8.0 + 2) << what << ", part " << i << " of " << times.size();
      }
    }
  }
}

TEST(Strides, ColumnsFromTheLastOnAreFound) {
  const Box box{128, 64};
  ObjectLife life = seen_life(box.object(), 4, [&](const UsePage& use) {
    for (std::uint64_t page = box.pages; page-- > 0;) {
      for (std::uint64_t plane = 0; plane < box.planes; ++plane) use(plane * box.pages + page);
    }
  });
  const auto found = take_strided(life, static_cast<std::uint32_t>(uses_of(life) / 16));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front().repeats, box.planes);
  EXPECT_GT(found.front().times.front(), found.front().times.back());
}

TEST(Strides, WhatThePagesBesideItTellStays) {
  const Object object{0, 4096};
  for (const bool is_forwards : {true, false}) {
    ObjectLife life = seen_life(object, 4, [&](const UsePage& use) {
      for (int i = 0; i < 3; ++i) is_forwards ? forwards(object, use) : backwards(object, use);
    });
    const std::size_t uses = uses_of(life);
    EXPECT_TRUE(take_strided(life, static_cast<std::uint32_t>(uses / 48)).empty());
    EXPECT_EQ(uses_of(life), uses);
  }
}

TEST(Strides, RandomUseIsNone) {
  for (unsigned seed = 0; seed < 7; ++seed) {
    std::mt19937 random(seed);
    std::vector<PageNumber> pages(4096);
    std::iota(pages.begin(), pages.end(), 0);
    std::ranges::shuffle(pages, random);
    ObjectLife life = seen_life({0, 4096}, seed, [&](const UsePage& use) {
      for (const PageNumber page : pages) use(page);
    });
    const std::size_t uses = uses_of(life);
    EXPECT_TRUE(take_strided(life, static_cast<std::uint32_t>(uses / 16)).empty()) << seed;
    EXPECT_EQ(uses_of(life), uses);
  }
}

TEST(Strides, OfAnObjectThatIsNotUsedThereAreNone) {
  ObjectLife life{.first = 0, .bytes = kPage, .uses = {}};
  EXPECT_TRUE(take_strided(life, 8).empty());
  life.uses[kPage / 2] = {1, 2, 3};
  EXPECT_TRUE(take_strided(life, 0).empty());
}

// As the heat equation by Fourier transforms does: the planes, and then across all of them.
TEST(Strides, PassesOfBothKindsAreToldApart) {
  const Box box{128, 64};
  const Object object = box.object(640);
  ObjectLife life = seen_life(object, 5, [&](const UsePage& use) {
    for (int i = 0; i < 2; ++i) {
      forwards(object, use);
      columns(box, use, object.first);
    }
  });
  const std::size_t uses = uses_of(life);
  const auto found = take_strided(life, static_cast<std::uint32_t>(uses / 64));
  ASSERT_EQ(found.size(), 2u);
  for (const StridedPass& pass : found) EXPECT_EQ(pass.repeats, box.planes);
  EXPECT_NEAR(static_cast<double>(uses_of(life)), static_cast<double>(uses) / 2, static_cast<double>(uses) / 50);
}

// ---- in plans

// Belady's uses of blocks, counted in page uses.
std::map<std::uint32_t, std::vector<std::uint64_t>> times_of_blocks(const std::vector<PageNumber>& uses) {
  std::map<std::uint32_t, std::vector<std::uint64_t>> found;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    found[static_cast<std::uint32_t>(uses[i] / PageOrder::kBlockPages)].push_back(i);
  }
  return found;
}

TEST(Strides, APlanTellsWhenTheBlocksOfALargerBoxAreUsed) {
  const auto run = [](const Box& box, const UsePage& use) {
    forwards(box.object(), use);
    for (int i = 0; i < 2; ++i) {
      forwards(box.object(), use);
      columns(box, use);
    }
  };
  Seen seen(4);
  const Box small{64, 64};
  (void)seen.born(seen.site({1}), small.object());
  run(small, [&](PageNumber page) { seen.use(page); });
  const Plan plan = planned(seen);
  ASSERT_EQ(plan.phases.size(), 1u);
  const PlannedPhase& phase = plan.phases.front();
  ASSERT_EQ(phase.objects.size(), 1u);
  ASSERT_EQ(phase.objects.front().strides.size(), 2u);
  EXPECT_EQ(phase.objects.front().strides.front().repeats, 64u);
  EXPECT_GE(phase.foreseen, 80u);

  const Box large{64, 256};  // planes of four blocks
  std::vector<PageNumber> uses;
  run(large, [&](PageNumber page) { uses.push_back(page); });
  const LiveObject live{.object = 0, .first = 0, .bytes = large.object().pages * kPage};
  const PageOrder order = order_of(phase, std::span(&live, 1));
  const double scale = static_cast<double>(uses.size()) / static_cast<double>(order.visits().back().last + 1);
  // Nearly all uses of a block come while a visit of it goes on, or about then.
  const double about = static_cast<double>(uses.size()) / 24;
  std::map<std::uint32_t, std::vector<std::pair<double, double>>> visits;
  double in_visits = 0;
  for (const auto& visit : order.visits()) {
    visits[visit.block].push_back({scale * static_cast<double>(visit.first), scale * static_cast<double>(visit.last)});
    in_visits += scale * static_cast<double>(visit.last - visit.first + 1);
  }
  std::size_t told = 0;
  for (const auto& [block, times] : times_of_blocks(uses)) {
    for (const std::uint64_t time : times) {
      told += std::ranges::any_of(visits[block], [&](const auto& visit) {
        return static_cast<double>(time) >= visit.first - about && static_cast<double>(time) <= visit.second + about;
      });
    }
  }
  EXPECT_GT(static_cast<double>(told), 0.95 * static_cast<double>(uses.size()));
  // And it does not say so by telling that all is used always: in two of five passes a quarter of the box is in use.
  const double all_blocks = static_cast<double>(large.object().pages) / PageOrder::kBlockPages;
  EXPECT_LT(in_visits / all_blocks / static_cast<double>(uses.size()), 0.2);
}

// Followed where memory had no room for a block of each piece, it read four times as much as no plan.
TEST(Strides, AnOrderAcrossMorePiecesThanMemoryHasRoomForDoesNotFit) {
  PlannedPhase phase;
  phase.objects.emplace_back().strides = {{.repeats = 256, .times = {10, 20, 30, 40}}};
  phase.once = 100;
  for (const std::uint64_t pages : {16384u, 32768u, 65536u}) {
    const LiveObject live{.object = 0, .first = 0, .bytes = pages * kPage};
    const PageOrder order = order_of(phase, std::span(&live, 1));
    EXPECT_TRUE(order.fits(24'000)) << pages;
    EXPECT_FALSE(order.fits(20'000)) << pages << ": 256 blocks are in use at once";
  }
  const LiveObject small{.object = 0, .first = 0, .bytes = 1024 * kPage};
  EXPECT_TRUE(order_of(phase, std::span(&small, 1)).fits(2048)) << "all of it is less";
  phase.objects.front().strides.clear();
  phase.objects.front().parts = {{{5, 0}}};
  const LiveObject large{.object = 0, .first = 0, .bytes = 65536 * kPage};
  EXPECT_TRUE(order_of(phase, std::span(&large, 1)).fits(64)) << "nothing goes across";
}

TEST(Strides, ABlockThatLiesInTwoPiecesIsVisitedForBoth) {
  PlannedPhase phase;
  PlannedObject& object = phase.objects.emplace_back();
  object.strides = {{.repeats = 2, .times = {10, 20, 30, 40, 50, 60, 70, 80}}};
  phase.once = 100;
  constexpr std::uint64_t kBlockBytes = PageOrder::kBlockPages * kPage;
  const LiveObject live{.object = 0, .first = 0, .bytes = 9 * kBlockBytes};  // pieces of four blocks and a half
  const PageOrder order = order_of(phase, std::span(&live, 1));
  std::map<std::uint32_t, int> visits;
  for (const auto& visit : order.visits()) ++visits[visit.block];
  for (std::uint32_t block = 0; block < 9; ++block) EXPECT_EQ(visits[block], block == 4 ? 2 : 1) << block;
  EXPECT_LE(order.visits().size(), most_visits(phase, std::span(&live, 1)));
  const LiveObject tiny{.object = 0, .first = 0, .bytes = kPage};
  EXPECT_EQ(order_of(phase, std::span(&tiny, 1)).visits().size(), 1u);
}

}  // namespace
}  // namespace farheap::plan
