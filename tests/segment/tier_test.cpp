// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The compressed tier against a map of what each page holds, over a backing that stumbles; and the whole pager before
// it.
#include "segment/tier.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include "../pager/random_program.hpp"
#include "base/clock.hpp"

namespace farheap::segment {
namespace {

using base::kPageBytes;
using pager::Backing;
using pager::PageNumber;
using pager::testing::FixedBudget;
using pager::testing::MapBacking;
using pager::testing::PageBytes;

struct TierWorld {
  explicit TierWorld(pager::testing::Faults faults = {}, std::uint64_t memory_pages = 4096, std::uint64_t seed = 1)
      : below(faults, seed), inner(memory_pages) {
    tier = Tier::make(below, inner, {.capacity_pages = kPages, .most_bytes = memory_pages * kPageBytes / 2}, written)
               .value();
    (void)tier->budget().page_limit(0, 0);
  }
  static constexpr std::uint64_t kPages = 8192;
  MapBacking below;
  FixedBudget inner;
  const Tier::Written written = [this](pager::PageRun run) { pages_written += run.count; };
  std::atomic<std::uint64_t> pages_written = 0;
  std::unique_ptr<Tier> tier;

  [[nodiscard]] Status write(PageNumber page, const PageBytes& bytes, bool soon = true) {
    const Backing::Write one{{page, 1}, bytes.data(), soon};
    return tier->write({&one, 1});
  }
  [[nodiscard]] Status read(PageNumber page, PageBytes& bytes) {
    const Backing::Read one{{page, 1}, bytes.data()};
    return tier->read({&one, 1});
  }
  [[nodiscard]] bool flush() {
    for (std::uint64_t from = 0; from != Backing::kFlushed;) {
      if (!tier->flush_some(from)) return false;
    }
    return true;
  }
  [[nodiscard]] bool has(PageNumber page) const { return tier->where({page, 1}).in_memory == 1; }
};

// A page of which two thirds are the same number in all words shrinks; one of noise does not.
PageBytes page_of(std::uint64_t value, bool noise = false) {
  PageBytes bytes;
  std::mt19937_64 random(value);
  for (std::size_t at = 0; at < kPageBytes; at += 8) {
    const std::uint64_t word = noise || at < kPageBytes / 3 ? random() : value;
    std::memcpy(bytes.data() + at, &word, 8);
  }
  return bytes;
}

TEST(Tier, APageComesBackWithoutTheBackingAndIsNotKept) {
  TierWorld world;
  ASSERT_TRUE(world.write(7, page_of(70)));
  EXPECT_TRUE(world.has(7));
  EXPECT_FALSE(world.tier->where({7, 1}).stays);
  EXPECT_EQ(world.below.pages(), 0u);
  PageBytes bytes;
  ASSERT_TRUE(world.read(7, bytes));
  EXPECT_EQ(bytes, page_of(70));
  EXPECT_FALSE(world.has(7));
  EXPECT_EQ(world.tier->check(), "");
  EXPECT_EQ(world.tier->facts().pages, 0u);
}

TEST(Tier, WhatDoesNotShrinkOrIsNotWantedSoonGoesPast) {
  TierWorld world;
  ASSERT_TRUE(world.write(1, page_of(1, true)));
  ASSERT_TRUE(world.write(2, page_of(2), false));
  EXPECT_FALSE(world.has(1));
  EXPECT_FALSE(world.has(2));
  EXPECT_EQ(world.below.page(1), page_of(1, true));
  EXPECT_EQ(world.pages_written, 1u) << "the other is the pager's to count";
  EXPECT_EQ(world.below.page(2), page_of(2));
}

TEST(Tier, AnOfferedPageStaysBelow) {
  TierWorld world;
  ASSERT_TRUE(world.write(3, page_of(3), false));
  const PageBytes bytes = page_of(3);
  const Backing::Write one{{3, 1}, bytes.data(), true};
  world.tier->offer({&one, 1});
  EXPECT_TRUE(world.has(3));
  EXPECT_TRUE(world.tier->where({3, 1}).stays);
  EXPECT_EQ(world.tier->at_rest({3, 1}), nullptr);
  PageBytes read;
  ASSERT_TRUE(world.read(3, read));
  EXPECT_EQ(read, bytes);
  EXPECT_EQ(world.below.page(3), bytes);
}

TEST(Tier, WhatIsInvalidatedIsReadFromBelow) {
  TierWorld world;
  for (const PageNumber page : {3, 4}) {
    ASSERT_TRUE(world.write(page, page_of(3), false));
    const PageBytes bytes = page_of(3);
    const Backing::Write offered{{page, 1}, bytes.data(), true};
    world.tier->offer({&offered, 1});
  }
  const PageBytes anothers = page_of(99);
  const Backing::Write one{{3, 1}, anothers.data()};
  ASSERT_TRUE(world.below.write({&one, 1}));
  world.tier->invalidate({3, 1});
  EXPECT_FALSE(world.has(3));
  EXPECT_TRUE(world.has(4));
  PageBytes read;
  ASSERT_TRUE(world.read(3, read));
  EXPECT_EQ(read, anothers);
  EXPECT_EQ(world.tier->check(), "");
}

// Reads of them counted as if a larger tier had saved them. Here pages that do not shrink are read again soon. Some
// that shrink are read again just before they would leave the tier; the others never.
TEST(Tier, PagesThatDoNotShrinkAreNoReasonToGrow) {
  class Slow final : public MapBacking {
   public:
    using MapBacking::MapBacking;
    Status read(std::span<const Read> runs) override {
      for (const auto since = base::Clock::now(); base::Clock::now() - since < std::chrono::microseconds(60);) {
      }
      return MapBacking::read(runs);
    }
  } slow({}, 1);
  TierWorld world;
  world.tier = Tier::make(slow, world.inner, {.capacity_pages = TierWorld::kPages, .most_bytes = 2048 * kPageBytes},
                          world.written)
                   .value();
  (void)world.tier->budget().page_limit(0, 0);
  const PageBytes noise = page_of(1, true), shrinks = page_of(2);
  constexpr PageNumber kLong = 3500, kAgain = 280, kNoise = 50;
  PageBytes bytes;
  for (PageNumber i = 0; i < 8000; ++i) {
    if (i >= kAgain) {
      ASSERT_TRUE(world.read(kLong + i % kAgain, bytes));
      ASSERT_TRUE(world.read(kLong + kAgain + i % kNoise, bytes));
    }
    ASSERT_TRUE(world.write(i % kLong, shrinks));  // is not read again
    ASSERT_TRUE(world.write(kLong + i % kAgain, shrinks));
    ASSERT_TRUE(world.write(kLong + kAgain + i % kNoise, noise));
  }
  EXPECT_LT(world.tier->facts().wanted_bytes, 768 * kPageBytes);
}

// A commit would not have had it, and who claimed the page next would not have seen it.
TEST(Tier, WhatHasOwnersIsNeverHereAlone) {
  class Owned final : public Backing {
   public:
    explicit Owned(MapBacking& pages) : pages_(pages) {}
    Status read(std::span<const Read> runs) override { return pages_.read(runs); }
    Status write(std::span<const Write> runs) override { return pages_.write(runs); }
    void forget(pager::PageRun run) override { pages_.forget(run); }
    bool has_owners() const override { return true; }

   private:
    MapBacking& pages_;
  };
  TierWorld world;
  Owned owned(world.below);
  const auto tier = Tier::make(owned, world.inner, {.capacity_pages = 64, .most_bytes = base::kMiB}, world.written);
  ASSERT_TRUE(tier);
  (void)(*tier)->budget().page_limit(0, 0);
  const PageBytes bytes = page_of(7);
  const Backing::Write one{{7, 1}, bytes.data(), true};
  ASSERT_TRUE((*tier)->write({&one, 1}));
  EXPECT_EQ(world.below.page(7), bytes);
  EXPECT_TRUE((*tier)->has_owners());
}

TEST(Tier, AFlushWritesWhatIsOnlyHereAndKeepsIt) {
  TierWorld world;
  for (PageNumber page = 0; page < 200; ++page) ASSERT_TRUE(world.write(page, page_of(page + 1)));
  world.tier->begin_flush();
  ASSERT_TRUE(world.flush());
  ASSERT_TRUE(world.write(300, page_of(300)));
  EXPECT_FALSE(world.has(300)) << "read back before the flush ends, it would be nowhere below";
  world.tier->end_flush();
  for (PageNumber page = 0; page < 200; ++page) {
    ASSERT_EQ(world.below.page(page), page_of(page + 1));
    ASSERT_TRUE(world.has(page));
    ASSERT_TRUE(world.tier->where({page, 1}).stays);
  }
  EXPECT_EQ(world.tier->check(), "");
}

TEST(Tier, TheOldestMakeRoomForTheNewest) {
  TierWorld world({}, 4096);
  for (PageNumber page = 0; page < 6000; ++page) {
    ASSERT_TRUE(world.write(page, page_of(page + 1)));
    const auto facts = world.tier->facts();
    ASSERT_LE(facts.held_bytes, facts.wanted_bytes + facts.wanted_bytes / 4 + SpanPool::kSpanBytes * 8) << page;
    if (page == 1000) {
      EXPECT_FALSE(world.has(0));
      EXPECT_TRUE(world.has(1000));
    }
  }
  PageBytes bytes;
  for (PageNumber page = 0; page < 6000; ++page) {
    ASSERT_TRUE(world.read(page, bytes));
    ASSERT_EQ(bytes, page_of(page + 1)) << page;
  }
}

// The program waits for a full disk: nothing that was taken may be lost meanwhile.
TEST(Tier, AFullStoreIsToldAndNothingIsLost) {
  TierWorld world({.full = 1.0}, 4096);
  PageNumber told = 0;
  for (PageNumber page = 0; page < 6000 && told == 0; ++page) {
    if (!world.write(page, page_of(page + 1))) told = page;
  }
  ASSERT_NE(told, 0u) << "it took more than it may";
  PageBytes bytes;
  for (PageNumber page = 0; page < told; ++page) {
    ASSERT_TRUE(world.read(page, bytes));
    ASSERT_EQ(bytes, page_of(page + 1)) << page;
  }
}

// A read of several pages, one of which the store cannot give, is tried again: those from here must still be there.
TEST(Tier, AReadThatFailedHalfWayCanBeTriedAgain) {
  TierWorld world({.read_error = 0.5}, 4096);
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(world.write(10, page_of(10)));
    ASSERT_TRUE(world.write(11, page_of(11), false));
    std::array<PageBytes, 2> bytes;
    const Backing::Read both{{10, 2}, bytes[0].data()};
    int tries = 1;
    while (!world.tier->read({&both, 1}) && tries < 100) ++tries;
    ASSERT_LT(tries, 100);
    ASSERT_EQ(bytes[0], page_of(10));
    ASSERT_EQ(bytes[1], page_of(11));
  }
}

// All that rested below, too, went at once when there was a page too much.
TEST(Tier, WhatRestsBelowTooGoesFromTheOldestOnAsAllElse) {
  TierWorld world;
  std::uint64_t before = 0;
  for (PageNumber page = 0; page < 1500; ++page) {
    const PageBytes bytes = page_of(page + 1);
    const Backing::Write one{{page, 1}, bytes.data(), true};
    world.tier->offer({&one, 1});
    const std::uint64_t pages = world.tier->facts().pages;
    ASSERT_GE(pages + 100, before) << page;
    before = pages;
  }
  EXPECT_GT(before, 100u);
}

// Memory became scarce in the middle of sweeps, and the tier kept what it had.
TEST(Tier, ItGivesBackWhatIsTooMuchWhateverIsWritten) {
  for (const bool idle : {false, true}) {
    TierWorld world;
    for (PageNumber page = 0; page < 500; ++page) ASSERT_TRUE(world.write(page, page_of(page + 1)));
    ASSERT_GT(world.tier->facts().held_bytes, 64 * kPageBytes);
    world.inner.pages = 16;
    const PageBytes bytes = page_of(7);
    for (PageNumber page = 1000; page < 1200; ++page) {
      (void)world.tier->budget().page_limit(0, 0);
      if (idle) {
        world.tier->offer({});
      } else {
        ASSERT_TRUE(world.write(page, bytes, false));
      }
    }
    EXPECT_LE(world.tier->facts().held_bytes, 32 * kPageBytes);
    EXPECT_EQ(world.tier->check(), "");
  }
}

TEST(Tier, AForkedChildHasNoFlushOfItsParents) {
  TierWorld world;
  world.tier->begin_flush();
  world.tier->lock_for_fork();
  world.tier->unlock_in_child();  // as if this were the child
  ASSERT_TRUE(world.write(1, page_of(1)));
  EXPECT_TRUE(world.has(1));
}

// Calls back in the middle of a read, which then fails.
class InterruptedBacking final : public Backing {
 public:
  explicit InterruptedBacking(Backing& below) : below_(below) {}
  Status read(std::span<const Read> /*runs*/) override {
    in_the_middle();
    return fail(ErrorCode::kIo, "cannot read", "test", "interrupted");
  }
  Status write(std::span<const Write> runs) override { return below_.write(runs); }
  void forget(pager::PageRun run) override { below_.forget(run); }
  std::function<void()> in_the_middle;

 private:
  Backing& below_;
};

// A read that had begun, and failed later, left its page here alone behind the flush.
TEST(Tier, AFlushWritesAlsoWhatIsBeingRead) {
  TierWorld world;
  InterruptedBacking below(world.below);
  world.tier = Tier::make(below, world.inner, {.capacity_pages = 64, .most_bytes = 1 << 20}, world.written).value();
  (void)world.tier->budget().page_limit(0, 0);
  ASSERT_TRUE(world.write(10, page_of(10)));
  below.in_the_middle = [&] {
    world.tier->begin_flush();
    EXPECT_TRUE(world.flush());
    world.tier->end_flush();
  };
  std::array<PageBytes, 2> bytes;
  const Backing::Read both{{10, 2}, bytes[0].data()};
  EXPECT_FALSE(world.tier->read({&both, 1}));
  EXPECT_TRUE(world.has(10));
  EXPECT_EQ(world.below.page(10), page_of(10));
  EXPECT_EQ(world.tier->check(), "");
}

// Each thread has pages of its own, as the pager deals with one page at a time; one more flushes.
TEST(Tier, EveryPageIsWhatWasWrittenLast) {
  TierWorld world({.read_error = 0.02, .write_error = 0.02, .full = 0.02, .delay_us = 20}, 1500);
  constexpr std::uint64_t kThreads = 3, kEach = 1200;
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> wrong = 0, near = 0;
  std::atomic<std::uint64_t> steps = 0;
  std::thread flusher([&] {
    for (std::uint64_t flushed_at = 0; !stop;) {
      if (steps < flushed_at + 1000) {
        std::this_thread::yield();
        continue;
      }
      flushed_at = steps;
      world.tier->begin_flush();
      (void)world.flush();
      world.tier->end_flush();
    }
  });
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937_64 random(thread);
      std::vector<std::uint64_t> stored(kEach, 0);  // 0: not there
      for (int step = 0; step < 12'000; ++step, ++steps) {
        const std::uint64_t at = random() % kEach;
        const PageNumber page = thread * kEach + at;
        if (random() % 16 == 0) {
          world.tier->forget({page, 1});
          stored[at] = 0;
        } else if (stored[at] == 0) {
          const std::uint64_t value = random() | 1;
          const bool noise = value % 8 == 1;
          const PageBytes bytes = page_of(value, noise);
          while (!world.write(page, bytes, random() % 8 != 0)) continue;
          stored[at] = value;
        } else {
          near += world.has(page);
          PageBytes bytes;
          while (!world.read(page, bytes)) continue;
          wrong += bytes != page_of(stored[at], stored[at] % 8 == 1);
          if (world.tier->where({page, 1}).in_memory != 0) ++wrong;  // it was read
          // It is written again, or dropped, before anybody reads it.
          world.tier->forget({page, 1});
          stored[at] = 0;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  stop = true;
  flusher.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(near, 1000u);
  EXPECT_EQ(world.tier->check(), "");
}

using pager::testing::World;
using pager::testing::WorldOptions;

struct Case {
  const char* name;
  WorldOptions options;
};
class TierModelTest : public testing::TestWithParam<Case> {};

WorldOptions::Near tier_before(Backing& below, pager::Budget& budget, base::RunCounters& counters) {
  const auto written = [&counters](pager::PageRun run) { counters.bytes_written += run.count * kPageBytes; };
  auto tier = Tier::make(below, budget, {.capacity_pages = 4096, .most_bytes = 4096 * kPageBytes}, written).value();
  pager::Budget* const its_budget = &tier->budget();
  return {std::move(tier), its_budget};
}

TEST_P(TierModelTest, EveryByteIsWhatWasWritten) {
  WorldOptions options = GetParam().options;
  options.near = tier_before;
  World world(options);
  run_and_compare(world, options, 3);
  EXPECT_GT(world.counters.faults_packed, 0u) << "nothing came from the tier: the test tested nothing";
  EXPECT_EQ(static_cast<Tier&>(world.rests()).check(), "");
}

INSTANTIATE_TEST_SUITE_P(
    Tier, TierModelTest,
    testing::Values(Case{"period",
                         {.pages = 4096, .memory_pages = 800, .policy = pager::PolicyKind::kPeriod, .seed = 31}},
                    Case{"slow_store", {.pages = 2048, .memory_pages = 500, .faults = {.delay_us = 300}, .seed = 32}},
                    Case{"errors",
                         {.pages = 2048,
                          .memory_pages = 500,
                          .policy = pager::PolicyKind::kPeriod,
                          .faults = {.read_error = 0.02, .write_error = 0.02, .full = 0.05, .delay_us = 50},
                          .seed = 33}},
                    Case{"guards", {.pages = 2048, .memory_pages = 500, .seed = 34, .guards = true}}),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace farheap::segment
