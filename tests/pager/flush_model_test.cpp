// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Flushes while threads write, discard and page. Each thread has pages of its own: when its flush is done, the backing
// holds of them just what the thread has written, whatever the evictor and the other threads do meanwhile.
#include <gtest/gtest.h>

#include <string>

#include "array_world.hpp"
#include "tests/steps.hpp"
#include "tests/words.hpp"

namespace farheap::pager::testing::flush_model_test {
namespace {

class Writer {
 public:
  Writer(World& world, PageNumber first, std::uint64_t pages, std::uint64_t seed, bool may_tear)
      : world_(world),
        first_(first),
        may_tear_(may_tear),
        values_(pages, 0),
        random_(seed),
        buffer_(Pager::kFlushPages) {}

  void step() {
    const PageNumber index = random_() % values_.size();
    const auto dice = random_() % 100;
    if (dice < 5) {
      flush();
    } else if (dice < 10) {
      const std::uint64_t count = std::min<std::uint64_t>(1 + random_() % 30, values_.size() - index);
      world_.pager->discard(first_ + index, count);
      std::fill_n(values_.begin() + static_cast<std::ptrdiff_t>(index), count, 0);
    } else if (dice < 15) {
      world_.pager->hint({static_cast<HintKind>(1 + random_() % 4), first_ + index,
                          std::min<std::uint64_t>(60, values_.size() - index)});
    } else if (dice < 55) {
      write(index, random_() % 6 == 0 ? 0 : random_());
    } else if (dice < 60) {
      for (PageNumber at = index; at < std::min<std::uint64_t>(index + 50, values_.size()); ++at) write(at, random_());
    } else {
      read(index);
    }
  }

  void read(PageNumber index) {
    world_.touch(first_ + index, false, buffer_[0].data(), [&](PageBytes& bytes) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data(), sizeof word);
      if (word != values_[index]) ++wrong;
    });
  }

  void flush() {
    if (!world_.pager->flush(buffer_[0].data())) {
      ++failed;
      return;
    }
    ++flushed;
    for (PageNumber index = 0; index < values_.size(); ++index) {
      // Nothing but absence, and nothing but zeros, are the same.
      const auto found = world_.backing.page(first_ + index);
      if (found ? holds(*found, values_[index]) : values_[index] == 0) continue;
      // Brought back by a hint without its hash, it may be written again, by the evictor or another thread's flush, and
      // on a full disk torn: then memory has it, and keeps it. Nobody may find it changed. Where a store stumbles, it
      // is tried again, and then the page is there.
      PageBytes torn;
      torn.fill(MapBacking::kTorn);
      if (!may_tear_ && found == torn && is_there_soon(index)) continue;
      may_tear_&& found == torn ? ++torn_later : ++not_there;
    }
  }

  int wrong = 0, not_there = 0, torn_later = 0, flushed = 0, failed = 0;

 private:
  static bool holds(const PageBytes& bytes, std::uint64_t value) {
    return test::repeats_word(bytes.data(), kPageBytes, value);
  }
  // Only this thread writes to the page.
  bool is_there_soon(PageNumber index) {
    for (int looks = 0; looks < 10'000; ++looks) {
      const auto found = world_.backing.page(first_ + index);
      if (found && holds(*found, values_[index])) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

  void write(PageNumber index, std::uint64_t value) {
    values_[index] = value;
    for (const std::size_t half : {std::size_t{0}, kPageBytes / 2}) {  // between the two the page may have left
      world_.touch(first_ + index, true, buffer_[0].data(),
                   [&](PageBytes& bytes) { test::repeat_word(bytes.data() + half, kPageBytes / 2, value); });
    }
  }

  World& world_;
  const PageNumber first_;
  const bool may_tear_;
  std::vector<std::uint64_t> values_;
  std::mt19937_64 random_;
  std::vector<PageBytes> buffer_;
};

struct Case {
  const char* name;
  std::uint64_t memory_pages;
  Faults faults;
};

class FlushModelTest : public ::testing::TestWithParam<Case> {};

TEST_P(FlushModelTest, WhatWasWrittenBeforeIsThere) {
  constexpr int kWriters = 3;
  constexpr std::uint64_t kPages = 700;
  WorldOptions options;
  options.pages = kWriters * kPages;
  options.memory_pages = GetParam().memory_pages;
  options.faults = GetParam().faults;
  World world(options);
  std::vector<std::unique_ptr<Writer>> writers;
  const bool may_tear = GetParam().faults.full > 0;
  for (int i = 0; i < kWriters; ++i) {
    writers.push_back(std::make_unique<Writer>(world, i * kPages, kPages, 31 + i, may_tear));
  }
  std::vector<std::thread> threads;
  for (auto& writer : writers) {
    threads.emplace_back([writer = writer.get()] {
      for (int step = 0; step < test::steps(2500, 2); ++step) writer->step();
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& writer : writers) {
    writer->flush();
    EXPECT_EQ(writer->wrong, 0);
    EXPECT_EQ(writer->not_there, 0);
    EXPECT_LT(writer->torn_later, writer->flushed);  // now and then
    for (std::uint64_t page = 0; page < kPages; ++page) writer->read(page);
    EXPECT_EQ(writer->wrong, 0) << "torn in memory, too";
    EXPECT_GT(writer->flushed, 20);
    EXPECT_EQ(writer->failed > 0, GetParam().faults.full > 0);
  }
  EXPECT_GT(world.guarded_writes, 0u);
  world.stop();
  world.pager->freeze();
  world.pager->thaw();
  EXPECT_EQ(world.pager->check(), "");
  EXPECT_EQ(world.view.broken_rules, 0);
  for (const auto& one : world.lost) ADD_FAILURE() << one;
}

INSTANTIATE_TEST_SUITE_P(Worlds, FlushModelTest,
                         ::testing::Values(Case{"enough_memory", 4000, {}}, Case{"little_memory", 600, {}},
                                           Case{"slow_store", 500, {.delay_us = 300}},
                                           Case{"store_stumbles", 600, {.read_error = 0.01, .write_error = 0.02}},
                                           Case{"full_disk", 600, {.full = 0.2}}),
                         [](const auto& one) { return one.param.name; });

// What a flush costs follows what has changed.
TEST(PagerFlush, WritesWhatDiffersAndNothingElse) {
  World world({.pages = 2048, .memory_pages = 4000});
  std::vector<PageBytes> buffer(Pager::kFlushPages);
  const auto write = [&](PageNumber page, std::uint64_t value) {
    world.touch(page, true, buffer[0].data(), [&](PageBytes& bytes) { std::memcpy(bytes.data() + 64, &value, 8); });
  };
  for (PageNumber page = 0; page < 1500; ++page) write(page, page + 1);
  ASSERT_TRUE(world.pager->flush(buffer[0].data()));
  EXPECT_EQ(world.backing.pages_written, 1500u);
  ASSERT_TRUE(world.pager->flush(buffer[0].data()));
  EXPECT_EQ(world.backing.pages_written, 1500u);
  write(700, 5);
  ASSERT_TRUE(world.pager->flush(buffer[0].data()));
  EXPECT_EQ(world.backing.pages_written, 1501u);
  write(701, 0);  // nothing but zeros is left
  ASSERT_TRUE(world.pager->flush(buffer[0].data()));
  EXPECT_EQ(world.backing.pages_written, 1501u);
  EXPECT_FALSE(world.backing.page(701));
  // What leaves after a flush need not be written again.
  world.budget.pages = 300;
  while (world.pager->resident_pages() > 300) std::this_thread::yield();
  EXPECT_EQ(world.backing.pages_written, 1501u);
}

struct FlushedWorld {
  explicit FlushedWorld(std::uint64_t pages) : world({.pages = 2048, .memory_pages = 4000}) {
    for (PageNumber page = 0; page < pages; ++page) write(page, page + 1);
  }
  void write(PageNumber page, std::uint64_t value) {
    world.touch(page, true, buffer[0].data(), [&](PageBytes& bytes) { std::memcpy(bytes.data() + 64, &value, 8); });
  }
  // How many pages in view it had to look at.
  std::uint64_t flush() {
    const std::uint64_t before = world.view.pages_read;
    EXPECT_TRUE(world.pager->flush(buffer[0].data()));
    return world.view.pages_read - before;
  }
  // The evictor guards them when it comes round.
  void flush_until_it_looks_at(std::uint64_t pages) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (flush() != pages) {
      ASSERT_LT(std::chrono::steady_clock::now(), until) << "it still looks at more";
    }
  }
  std::uint64_t stored(PageNumber page) const {
    std::uint64_t value = 0;
    if (const auto found = world.backing.page(page)) std::memcpy(&value, found->data() + 64, 8);
    return value;
  }
  void end() {
    world.stop();
    world.pager->freeze();
    world.pager->thaw();
    EXPECT_EQ(world.pager->check(), "");
    EXPECT_EQ(world.view.broken_rules, 0);
  }
  World world;
  std::vector<PageBytes> buffer = std::vector<PageBytes>(Pager::kFlushPages);
};

// A flush once looked at every page in memory, whatever had been written.
TEST(PagerFlush, WhatIsNotWrittenToIsNotLookedAtForEver) {
  FlushedWorld one(1500);
  EXPECT_GE(one.flush(), 1500u);
  one.flush_until_it_looks_at(0);
  EXPECT_EQ(one.world.backing.pages_written, 1500u);
  for (const PageNumber page : {3, 700, 701, 1499}) one.write(page, 99);
  EXPECT_EQ(one.flush(), 4u);
  EXPECT_EQ(one.world.backing.pages_written, 1504u);
  for (const PageNumber page : {3, 700, 701, 1499}) EXPECT_EQ(one.stored(page), 99u);
  one.write(3, 100);  // without a fault: it is looked at anyway
  EXPECT_EQ(one.flush(), 4u);
  EXPECT_EQ(one.stored(3), 100u);
  one.end();
}

// A device goes by no guard. Its page cannot be taken out of view while it is pinned.
TEST(PagerFlush, WhatADeviceWritesToIsLookedAtEveryTime) {
  FlushedWorld one(100);
  one.world.view.refuse(50, true);
  one.flush_until_it_looks_at(1);
  for (std::uint64_t value = 200; value < 500; ++value) {
    EXPECT_FALSE(one.world.view.touch(50, [&](PageBytes& bytes) { std::memcpy(bytes.data() + 64, &value, 8); }));
    EXPECT_EQ(one.flush(), 1u);
    ASSERT_EQ(one.stored(50), value);
  }
  one.world.view.refuse(50, false);
  one.flush_until_it_looks_at(0);
  one.end();
}

// The child's pages would not be, though its pager took them for such.
TEST(PagerFlush, NothingIsGuardedWhileAProcessForks) {
  FlushedWorld one(100);
  one.flush_until_it_looks_at(0);
  one.world.pager->pause_eviction(true);
  one.world.pager->freeze();
  for (PageNumber page = 0; page < 100; ++page) {
    bool guarded = false;
    EXPECT_FALSE(one.world.view.write(page, guarded, [&](PageBytes& bytes) { bytes[0] = std::byte{1}; })) << page;
  }
  one.world.pager->thaw();
  EXPECT_GE(one.flush(), 100u);  // and what came with them
  EXPECT_EQ(one.world.backing.pages_written, 200u);
  one.end();
}

// Guards of pages that the program itself dropped.
TEST(PagerFlush, AGuardedPageThatVanishesIsLookedAtWhenItComesBack) {
  FlushedWorld one(100);
  one.flush_until_it_looks_at(0);
  one.world.view.vanish(50);
  one.world.pager->discard(60, 5);
  one.write(50, 0);
  one.write(62, 7);
  EXPECT_GE(one.flush(), 2u);
  EXPECT_FALSE(one.world.backing.page(50));
  EXPECT_EQ(one.stored(62), 7u);
  EXPECT_EQ(one.stored(51), 52u);
  one.end();
}

}  // namespace
}  // namespace farheap::pager::testing::flush_model_test
