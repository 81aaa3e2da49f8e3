// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Commits while threads write, discard and page. Each thread has pages of its own and numbers its writes, so what a
// commit has taken must be the state after some first k writes of each thread: nothing half, nothing left out that
// happened before something that is in.
#include <gtest/gtest.h>

#include <string>

#include "array_world.hpp"
#include "tests/steps.hpp"
#include "tests/words.hpp"

namespace farheap::pager::testing {
namespace {

struct Write {
  PageNumber page;
  std::uint64_t number;  // 0 in the page: discarded
  bool discard;
};

class Writer {
 public:
  Writer(World& world, PageNumber first, std::uint64_t pages, std::uint64_t seed)
      : world_(world), first_(first), pages_(pages), random_(seed), buffer_(512) {}

  // Before anything is touched, or beside the first touches of another thread.
  void expect_all() {
    for (PageNumber page = first_; page < first_ + pages_; page += kExtentPages)
      world_.pager->hint({HintKind::kExpect, page, 1});
  }

  void step() {
    const PageNumber page = first_ + random_() % pages_;
    const auto dice = random_() % 100;
    if (dice < 4) {
      note({page, 0, true});
      world_.pager->discard(page, 1);
    } else if (dice < 10) {
      world_.pager->hint({HintKind::kExpect, page, std::min<PageNumber>(40, first_ + pages_ - page)});
    } else if (dice < 16) {
      const auto kind = static_cast<HintKind>(random_() % 9);
      world_.pager->hint({kind, page, std::min<PageNumber>(1 + random_() % 300, first_ + pages_ - page)});
    } else if (dice < 62) {
      write(page);
    } else if (dice < 70) {
      for (PageNumber at = page; at < std::min(page + 40, first_ + pages_); ++at) write(at);
    } else {
      world_.touch(page, false, buffer_[0].data(), [](PageBytes&) {});
    }
  }

  // Empty if `found` is the state after the first k writes, for some k that is at least that of the call before. Goes
  // on from there: writers go on meanwhile, and from the beginning it would take longer and longer.
  std::string compare(const std::unordered_map<PageNumber, PageBytes>& found) {
    std::vector<std::uint64_t> there(pages_);
    std::uint64_t last = compared_;
    for (PageNumber i = 0; i < pages_; ++i) {
      const auto at = found.find(first_ + i);
      if (at == found.end()) continue;
      std::memcpy(&there[i], at->second.data(), sizeof there[i]);
      if (!test::repeats_word(at->second.data(), kPageBytes, there[i])) {
        return "page " + std::to_string(first_ + i) + " is half";
      }
      last = std::max(last, there[i]);
    }
    std::lock_guard lock(mutex_);
    // Discards leave no number: as many of them may follow the last number as make the states alike.
    std::size_t different = 0;
    for (PageNumber i = 0; i < pages_; ++i) different += model_[i] != there[i];
    for (;; ++compared_) {
      if (compared_ >= last && different == 0) return {};
      if (compared_ == log_.size()) break;
      const auto& [page, number, discard] = log_[compared_];
      std::uint64_t& now = model_[page - first_];
      different -= now != there[page - first_];
      now = number;
      different += now != there[page - first_];
    }
    return "thread with pages from " + std::to_string(first_) + ": no prefix of its writes gives what was committed";
  }

 private:
  void note(Write write) {
    std::lock_guard lock(mutex_);
    log_.push_back(write);
  }
  void write(PageNumber page) {
    std::uint64_t number;
    {
      std::lock_guard lock(mutex_);
      number = log_.size() + 1;
      log_.push_back({page, number, false});
    }
    world_.write(page, buffer_[0].data(),
                 [&](PageBytes& bytes) { test::repeat_word(bytes.data(), kPageBytes, number); });
  }

  World& world_;
  const PageNumber first_;
  const std::uint64_t pages_;
  std::mt19937_64 random_;
  std::vector<PageBytes> buffer_;
  std::mutex mutex_;
  std::vector<Write> log_;
  std::uint64_t compared_ = 0;                                             // so many of its writes
  std::vector<std::uint64_t> model_ = std::vector<std::uint64_t>(pages_);  // after them
};

void put(World& world, PageRun run, const std::byte* bytes) {
  const Backing::Write one{run, bytes};
  while (!world.backing.write({&one, 1})) continue;
}

// Takes all of a commit.
Pager::Take take_into(World& world) {
  return [&world](std::span<const PageRun> runs, const std::byte* bytes) -> Status {
    for (const PageRun& run : runs) {
      put(world, run, bytes);
      bytes += run.count * kPageBytes;
    }
    return {};
  };
}

struct Case {
  const char* name;
  std::uint64_t memory_pages;
  Faults faults;
  double fail;  // of commits
};

class CommitModelTest : public ::testing::TestWithParam<Case> {};

TEST_P(CommitModelTest, EveryCommitIsAStateThatWas) {
  constexpr int kWriters = 3;
  constexpr std::uint64_t kPages = 1500;
  WorldOptions options;
  options.pages = kWriters * kPages;
  options.memory_pages = GetParam().memory_pages;
  options.faults = GetParam().faults;
  options.track_changes = true;
  World world(options);
  std::vector<std::unique_ptr<Writer>> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.push_back(std::make_unique<Writer>(world, i * kPages, kPages, 7 + i));
  }
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (auto& writer : writers) {
    threads.emplace_back([&, writer = writer.get()] {
      writer->expect_all();
      while (!stop) writer->step();
    });
  }
  std::mt19937_64 random(11);
  std::vector<PageBytes> buffer(Pager::kCommitPages);
  std::uint64_t taken = 0;
  const int rounds = test::steps(25, 4);
  for (int round = 0; round < rounds; ++round) {
    bool cut = false;
    const std::uint64_t pages = world.pager->begin_commit([&] {
      cut = true;
      world.backing.hold_forgets(true);
    });
    EXPECT_TRUE(cut);
    const bool fails = std::uniform_real_distribution<>()(random) < GetParam().fail;
    std::uint64_t left = fails ? random() % (pages + 1) : UINT64_MAX;
    std::uint64_t arrived = 0;
    const auto take = [&](std::span<const PageRun> runs, const std::byte* bytes) -> Status {
      for (const PageRun& run : runs) {
        if (left < run.count) return fail(ErrorCode::kIo, "cannot write", "test", "injected");
        left -= run.count;
        arrived += run.count;
        put(world, run, bytes);
        bytes += run.count * kPageBytes;
      }
      return {};
    };
    const Status status = world.pager->take_commit(buffer[0].data(), take);
    if (status) {
      EXPECT_EQ(arrived, pages);
      const auto found = world.backing.copy();
      for (int i = 0; i < kWriters; ++i) {
        ASSERT_EQ(writers[i]->compare(found), "") << "round " << round;
      }
      taken += pages;
    }
    world.backing.hold_forgets(false);
    world.pager->end_commit(status.has_value());
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  // The last one, with all at rest, has all.
  (void)world.pager->begin_commit([] {});
  ASSERT_TRUE(world.pager->take_commit(buffer[0].data(), take_into(world)));
  const auto found = world.backing.copy();
  world.pager->end_commit(true);
  EXPECT_FALSE(world.pager->has_changes());
  for (int i = 0; i < kWriters; ++i) ASSERT_EQ(writers[i]->compare(found), "") << "at the end";
  world.stop();
  EXPECT_EQ(world.pager->check(), "");
  EXPECT_EQ(world.view.broken_rules, 0);
  EXPECT_GT(taken, 0u);
  EXPECT_TRUE(world.view.huge_pages() > 0 || GetParam().memory_pages < 2 * kExtentPages);
  for (const auto& one : world.lost) ADD_FAILURE() << one;
}

INSTANTIATE_TEST_SUITE_P(Worlds, CommitModelTest,
                         ::testing::Values(Case{"enough_memory", 8000, {}, 0}, Case{"little_memory", 1200, {}, 0},
                                           Case{"very_little_memory", 700, {.delay_us = 300}, 0},
                                           Case{"commits_fail", 1200, {.delay_us = 100}, 0.4},
                                           Case{
                                               "store_stumbles", 1200, {.read_error = 0.01, .write_error = 0.02}, 0.2}),
                         [](const auto& one) { return one.param.name; });

// It had no bytes, and counted as changed: the next commit waited for it for ever.
TEST(PagerCommit, APageThatTheProgramHasDroppedIsNotWaitedFor) {
  WorldOptions options{.pages = 512, .memory_pages = 100};
  options.track_changes = true;
  World world(options);
  std::vector<PageBytes> buffer(512);
  const auto write = [&](PageNumber page) {
    world.write(page, buffer[0].data(), [](PageBytes& bytes) { bytes.fill(std::byte{1}); });
  };
  write(0);
  world.view.vanish(0);
  for (PageNumber page = 1; world.pager->state(0) != PageState::kFresh; page = page % 511 + 1) write(page);
  const std::uint64_t pages = world.pager->begin_commit([] {});
  EXPECT_TRUE(world.pager->take_commit(buffer[0].data(), take_into(world)));
  world.pager->end_commit(true);
  EXPECT_GT(pages, 0u);
}

}  // namespace
}  // namespace farheap::pager::testing
