// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pages that others change, too. Two pagers over one backing take pages from each other: who writes to a page claims
// it, the other commits and invalidates it. No write may be lost, and nobody may see what was there before.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "random_program.hpp"
#include "tests/words.hpp"

namespace farheap::pager::testing::owners_test {
namespace {

std::uint64_t word(const PageBytes& bytes) {
  std::uint64_t value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}
bool is_whole(const PageBytes& bytes) { return std::memcmp(bytes.data(), bytes.data() + 8, kPageBytes - 8) == 0; }
PageBytes page_of(std::uint64_t value) {
  PageBytes bytes;
  test::repeat_word(bytes.data(), kPageBytes, value);
  return bytes;
}

// A page that was never written reads as zeros.
Status read_or_zeros(MapBacking& pages, std::span<const Backing::Read> runs) {
  for (const Backing::Read& one : runs) {
    for (std::uint32_t i = 0; i < one.run.count; ++i) {
      std::byte* const into = one.into + i * kPageBytes;
      const Backing::Read single{{one.run.first + i, 1}, into};
      Status status = pages.read({&single, 1});
      if (!status && status.error().code != ErrorCode::kCorrupt) return status;
      if (!status) std::memset(into, 0, kPageBytes);
    }
  }
  return {};
}

class Owned : public Backing {
 public:
  explicit Owned(MapBacking& pages) : pages_(pages) {}
  Status read(std::span<const Read> runs) override { return read_or_zeros(pages_, runs); }
  Status write(std::span<const Write> runs) override { return pages_.write(runs); }
  void forget(PageRun run) override { pages_.forget(run); }
  Result<Stored> stored_from(PageNumber first) override { return pages_.stored_from(first); }
  bool has_owners() const override { return true; }

 protected:
  MapBacking& pages_;
};

class Directory;

// The two pagers have one each, over the same pages.
class Shared final : public Owned {
 public:
  Shared(MapBacking& pages, Directory& directory, int who) : Owned(pages), directory_(directory), who_(who) {}
  void invalidate(PageRun run) override { invalidated += run.count; }
  Status claim(PageRun run) override;

  std::atomic<std::uint64_t> invalidated{0}, claims{0};

 private:
  Directory& directory_;
  const int who_;
};

// Who owns which page: one of the two, or nobody yet.
class Directory {
 public:
  explicit Directory(std::uint64_t pages) : owners_(pages, kNobody), buffer_(Pager::kCommitPages) {}
  void join(int who, Pager& pager) { pagers_[who] = &pager; }

  Status take(int who, PageNumber page, MapBacking& pages) {
    std::lock_guard lock(mutex_);
    if (owners_[page] == who) return {};
    Pager& other = *pagers_[1 - who];
    if (owners_[page] != kNobody) {
      ++taken;
      (void)other.begin_commit([] {});
      const Status status =
          other.take_commit(buffer_[0].data(), [&](std::span<const PageRun> runs, const std::byte* bytes) -> Status {
            for (const PageRun& run : runs) {
              const Backing::Write one{run, bytes};
              if (Status written = pages.write({&one, 1}); !written) return written;
              bytes += run.count * kPageBytes;
            }
            return {};
          });
      other.end_commit(status.has_value());
      if (!status) return status;
    }
    other.invalidate(page, 1);
    pagers_[who]->invalidate(page, 1);  // read while the other wrote
    owners_[page] = who;
    return {};
  }
  // The other pager may change what this one does not own at any time.
  void invalidate_what_is_not_own(int who, PageRun run) {
    std::lock_guard lock(mutex_);
    for (std::uint32_t i = 0; i < run.count;) {
      std::uint32_t count = 0;
      while (i + count < run.count && owners_[run.first + i + count] != who) ++count;
      if (count != 0) pagers_[who]->invalidate(run.first + i, count);
      i += count + 1;
    }
  }
  std::uint64_t taken = 0;

 private:
  static constexpr int kNobody = -1;
  std::mutex mutex_;
  std::array<Pager*, 2> pagers_{};
  std::vector<int> owners_;
  std::vector<PageBytes> buffer_;
};

Status Shared::claim(PageRun run) {
  ++claims;
  return directory_.take(who_, run.first, pages_);
}

struct Case {
  const char* name;
  std::uint64_t pages, memory_pages;
  Faults faults;
};

class OwnersTest : public ::testing::TestWithParam<Case> {};

// One of the two pagers.
struct Side {
  Side(int who, const Case& one, MapBacking& pages, Directory& directory) {
    WorldOptions options;
    options.pages = one.pages;
    options.memory_pages = one.memory_pages;
    options.track_changes = true;
    options.seed = 10 + who;
    options.near = [&](Backing&, Budget&, base::RunCounters&) {
      auto made = std::make_unique<Shared>(pages, directory, who);
      shared = made.get();
      return WorldOptions::Near{std::move(made)};
    };
    world = std::make_unique<World>(options);
    directory.join(who, *world->pager);
  }
  Shared* shared = nullptr;
  std::unique_ptr<World> world;
};

void run_side(World& world, Directory& directory, int who, std::uint64_t pages, std::uint64_t seed,
              std::vector<std::atomic<std::uint64_t>>& counted, std::atomic<std::uint64_t>& wrong) {
  std::mt19937_64 random(seed);
  std::vector<PageBytes> buffer(512);
  std::vector<std::uint64_t> seen(pages);
  const auto note = [&](PageNumber page, const PageBytes& bytes) {
    wrong += !is_whole(bytes) || word(bytes) < seen[page];
    seen[page] = word(bytes);
  };
  const auto read = [&](PageNumber page) {
    world.touch(page, false, buffer[0].data(), [&](PageBytes& bytes) { note(page, bytes); });
  };
  for (int step = 0; step < 2000; ++step) {
    const PageNumber page = random() % 4 != 0 ? random() % 40 : random() % pages;
    const auto dice = random() % 100;
    if (dice < 30) {
      world.write(page, buffer[0].data(), [&](PageBytes& bytes) {
        note(page, bytes);
        bytes = page_of(word(bytes) + 1);
        ++counted[page];
      });
    } else if (dice < 85) {
      read(page);
    } else if (dice < 90) {
      for (PageNumber at = page; at < std::min(page + 60, pages); ++at) read(at);
    } else if (dice < 95) {
      const auto kind = static_cast<HintKind>(random() % 9);
      world.pager->hint({kind, page, std::min<PageNumber>(1 + random() % 300, pages - page)});
    } else {
      const auto count = static_cast<std::uint32_t>(std::min<PageNumber>(1 + random() % 100, pages - page));
      directory.invalidate_what_is_not_own(who, {page, count});
    }
  }
}

TEST_P(OwnersTest, NoWriteIsLostAndNobodySeesWhatWasBefore) {
  const Case& one = GetParam();
  MapBacking pages(one.faults, 3);
  Directory directory(one.pages);
  std::array<Side, 2> sides{Side(0, one, pages, directory), Side(1, one, pages, directory)};
  std::vector<std::atomic<std::uint64_t>> counted(one.pages);
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back(
        [&, i] { run_side(*sides[i % 2].world, directory, i % 2, one.pages, 100 + i, counted, wrong); });
  }
  for (auto& thread : threads) thread.join();
  std::vector<PageBytes> buffer(512);
  // To claim all of them has the other commit.
  for (PageNumber page = 0; page < one.pages; ++page) {
    Side& side = sides[page % 2];
    ASSERT_TRUE(side.shared->claim({page, 1}));
    side.world->touch(page, false, buffer[0].data(), [&](PageBytes& bytes) {
      EXPECT_EQ(word(bytes), counted[page]) << page;
      wrong += !is_whole(bytes);
    });
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(directory.taken, 0u);
  for (Side& side : sides) {
    EXPECT_GT(side.shared->claims, 0u);
    EXPECT_GT(side.shared->invalidated, 0u);
    side.world->stop();
    EXPECT_EQ(side.world->pager->check(), "");
    EXPECT_EQ(side.world->view.broken_rules, 0);
    for (const auto& message : side.world->lost) ADD_FAILURE() << message;
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, OwnersTest,
                         ::testing::Values(Case{"enough_memory", 1500, 4000, {}}, Case{"little_memory", 1500, 400, {}},
                                           Case{"slow_store", 1500, 300, {.delay_us = 200}},
                                           Case{"store_stumbles", 600, 200, {.read_error = 0.01}}),
                         [](const auto& one) { return one.param.name; });

// ---- one pager, and a backing that somebody else changes

// Grants whatever is claimed.
class Granting final : public Owned {
 public:
  using Owned::Owned;
  Status claim(PageRun /*run*/) override {
    if (++claims == 1 && at_first_claim) at_first_claim();
    return {};
  }
  int claims = 0;
  std::function<void()> at_first_claim;
};

class InvalidateTest : public ::testing::Test {
 protected:
  InvalidateTest() {
    WorldOptions options{.pages = 2048, .memory_pages = 600};
    options.track_changes = true;
    options.near = [this](Backing& below, Budget&, base::RunCounters&) {
      auto made = std::make_unique<Granting>(static_cast<MapBacking&>(below));
      granting_ = made.get();
      return WorldOptions::Near{std::move(made)};
    };
    world_ = std::make_unique<World>(options);
  }
  void put(PageNumber page, std::uint64_t value) {
    const PageBytes bytes = page_of(value);
    const Backing::Write one{{page, 1}, bytes.data()};
    ASSERT_TRUE(world_->backing.write({&one, 1}));
  }
  std::uint64_t read(PageNumber page) {
    std::uint64_t value = 0;
    world_->touch(page, false, buffer_[0].data(), [&](PageBytes& bytes) { value = word(bytes); });
    return value;
  }
  void write(PageNumber page, std::uint64_t value) {
    world_->write(page, buffer_[0].data(), [&](PageBytes& bytes) { bytes = page_of(value); });
  }
  Granting* granting_ = nullptr;
  std::unique_ptr<World> world_;
  std::vector<PageBytes> buffer_ = std::vector<PageBytes>(512);
};

TEST_F(InvalidateTest, WhatAnotherHasWrittenIsRead) {
  for (const PageNumber page : {3, 700}) write(page, 5);
  EXPECT_EQ(read(9), 0u) << "a page that was fresh";
  for (const PageNumber page : {3, 9, 700, 1500}) put(page, 7);
  world_->pager->invalidate(0, 2048);
  for (const PageNumber page : {3, 9, 700, 1500}) EXPECT_EQ(read(page), 7u) << page;
}

TEST_F(InvalidateTest, WhatWasWrittenHereAndNowhereElseIsLost) {
  write(3, 5);
  world_->pager->invalidate(3, 1);
  EXPECT_EQ(read(3), 0u);
}

TEST_F(InvalidateTest, ItsNeighboursStayAsTheyAre) {
  for (PageNumber page = 0; page < 16; ++page) write(page, 100 + page);
  for (PageNumber page = 0; page < 16; ++page) put(page, 7);
  world_->pager->invalidate(4, 8);
  for (PageNumber page = 0; page < 16; ++page) EXPECT_EQ(read(page), page / 4 % 3 == 0 ? 100 + page : 7u) << page;
}

TEST_F(InvalidateTest, MemoryIsGivenBack) {
  for (PageNumber page = 0; page < 200; ++page) write(page, 5);
  const std::uint64_t before = world_->pager->resident_pages();
  world_->pager->invalidate(0, 200);
  EXPECT_LE(world_->pager->resident_pages() + 200, before);
}

TEST_F(InvalidateTest, WhatNobodyHasTouchedIsStillInTheStore) {
  for (const PageNumber page : {3, 9}) put(page, 7);
  world_->pager->invalidate(3, 1);
  for (const PageNumber page : {3, 9}) EXPECT_EQ(read(page), 7u) << page;
}

TEST_F(InvalidateTest, APageIsClaimedOnceAndAgainAfterACommit) {
  write(3, 5);
  write(3, 6);
  EXPECT_EQ(granting_->claims, 1);
  (void)world_->pager->begin_commit([] {});
  world_->pager->end_commit(true);
  write(3, 7);
  EXPECT_EQ(granting_->claims, 2);
  EXPECT_EQ(read(3), 7u);
}

// The write came after the cut of the last commit before the page was taken, and was in none.
TEST_F(InvalidateTest, AClaimThatWasGrantedBeforeACommitIsMadeAgain) {
  granting_->at_first_claim = [&] {
    (void)world_->pager->begin_commit([] {});
    world_->pager->end_commit(true);
  };
  write(3, 5);
  EXPECT_EQ(granting_->claims, 2);
}

TEST_F(InvalidateTest, AClaimThatWasGrantedBeforeAnInvalidationIsMadeAgain) {
  EXPECT_EQ(read(3), 0u);
  granting_->at_first_claim = [&] {
    put(3, 7);
    world_->pager->invalidate(3, 1);
  };
  std::uint64_t before = 0;
  world_->write(3, buffer_[0].data(), [&](PageBytes& bytes) { before = word(bytes); });
  EXPECT_EQ(granting_->claims, 2);
  EXPECT_EQ(before, 7u);
}

TEST(PagerOwners, NeedAPagerThatTracksChanges) {
  MapBacking pages({}, 1);
  Granting granting(pages);
  ArrayView view(512);
  FixedBudget budget(512);
  base::RunCounters counters;
  PagerOptions options;
  options.capacity_pages = 512;
  const auto pager = Pager::make(view, granting, budget, counters, options);
  ASSERT_FALSE(pager);
  EXPECT_EQ(pager.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace farheap::pager::testing::owners_test
