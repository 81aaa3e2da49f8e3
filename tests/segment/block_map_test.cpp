// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The block map against a simple model, in threads and in forked families.
#include "segment/block_map.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "base/units.hpp"

namespace farheap::segment {
namespace {

using base::kPageBytes;
using pager::PageNumber;
using pager::PageRun;

constexpr std::uint32_t kMostPages = 64;

// Pages whose first and last words tell the page and its value.
class Pages {
 public:
  Pages() : at_(static_cast<std::byte*>(std::aligned_alloc(kPageBytes, kMostPages * kPageBytes))) {}
  ~Pages() { std::free(at_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  void set(std::uint32_t index, PageNumber page, std::uint64_t value) {
    std::uint64_t words[kPageBytes / 8];
    for (std::size_t i = 0; i < kPageBytes / 8; ++i) words[i] = value * 1'000'003 + page * 512 + i;
    std::memcpy(at_ + index * kPageBytes, words, kPageBytes);
  }
  [[nodiscard]] bool has(std::uint32_t index, PageNumber page, std::uint64_t value) const {
    std::uint64_t words[kPageBytes / 8];
    std::memcpy(words, at_ + index * kPageBytes, kPageBytes);
    for (std::size_t i = 0; i < kPageBytes / 8; ++i) {
      if (words[i] != value * 1'000'003 + page * 512 + i) return false;
    }
    return true;
  }
  [[nodiscard]] std::byte* data() { return at_; }

 private:
  std::byte* at_;
};

class BlockMapTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto store = open_store(GetParam(), {.block_bytes = kPageBytes});
    ASSERT_TRUE(store.has_value()) << store.error().message();
    store_ = std::move(*store);
    auto map = BlockMap::make(*store_, 1 << 16);
    ASSERT_TRUE(map.has_value()) << map.error().message();
    map_ = std::move(*map);
  }
  [[nodiscard]] std::uint64_t blocks_in_store() {
    auto usage = store_->usage();
    EXPECT_TRUE(usage.has_value());
    return usage ? usage->blocks : 0;
  }
  [[nodiscard]] bool forks() const { return has(store_->capabilities(), Capability::kForks); }
  std::unique_ptr<Store> store_;
  std::unique_ptr<BlockMap> map_;
};

// One random step after another on pages [first, first + count). Returns what went wrong, or nothing.
class Worker {
 public:
  Worker(BlockMap& map, PageNumber first, std::uint32_t count, unsigned seed)
      : map_(map), first_(first), count_(count), random_(seed) {}

  std::string step() {
    const auto offset = static_cast<std::uint32_t>(random_() % count_);
    const std::uint32_t pages = 1 + static_cast<std::uint32_t>(random_()) % std::min(kMostPages, count_ - offset);
    const PageRun run{first_ + offset, pages};
    switch (random_() % 4) {
      case 0:
      case 1: return write(run);
      case 2: return read(run);
      default: return forget(run);
    }
  }
  std::string read_all() {
    for (std::uint32_t at = 0; at < count_; at += kMostPages) {
      if (auto wrong = read({first_ + at, std::min(kMostPages, count_ - at)}); !wrong.empty()) return wrong;
    }
    return {};
  }
  std::string write(PageRun run) {
    ++value_;
    for (std::uint32_t i = 0; i < run.count; ++i) {
      pages_.set(i, run.first + i, value_);
      model_[run.first + i] = value_;
    }
    const pager::Backing::Write one{run, pages_.data()};
    const Status status = map_.write({&one, 1});
    return status ? std::string() : status.error().message();
  }
  std::string read(PageRun run) {
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const auto known = model_.find(run.first + i);
      if ((map_.slot_of(run.first + i) != kNoSlot) != (known != model_.end()))
        return "a page is there, or not, wrongly";
    }
    for (std::uint32_t i = 0; i < run.count;) {  // runs of pages that are there
      if (!model_.contains(run.first + i)) {
        ++i;
        continue;
      }
      std::uint32_t end = i;
      while (end < run.count && model_.contains(run.first + end)) ++end;
      const pager::Backing::Read one{{run.first + i, end - i}, pages_.data()};
      if (Status status = read_one(one); !status) return status.error().message();
      for (std::uint32_t k = i; k < end; ++k) {
        if (!pages_.has(k - i, run.first + k, model_[run.first + k])) return "wrong bytes";
      }
      i = end;
    }
    return {};
  }
  // In flight, where the store can, and waited for.
  Status read_one(const pager::Backing::Read& one) {
    if (reads_of_ != getpid()) {
      reads_ = map_.reads_in_flight(1);
      reads_of_ = getpid();
    }
    if (!reads_ || !reads_->begin(0, one)) return map_.read({&one, 1});
    std::optional<pager::Backing::Reads::Answer> answer;
    while (!(answer = reads_->take())) {
    }
    return answer->arrived ? Status{} : map_.read({&one, 1});
  }
  std::string forget(PageRun run) {
    map_.forget(run);
    for (std::uint32_t i = 0; i < run.count; ++i) model_.erase(run.first + i);
    return {};
  }
  void values_from(std::uint64_t value) { value_ = value; }
  [[nodiscard]] std::size_t known() const { return model_.size(); }

 private:
  std::unique_ptr<pager::Backing::Reads> reads_;
  pid_t reads_of_ = 0;
  BlockMap& map_;
  PageNumber first_;
  std::uint32_t count_;
  std::mt19937 random_;
  std::uint64_t value_ = 0;
  std::map<PageNumber, std::uint64_t> model_;
  Pages pages_;
};

TEST_P(BlockMapTest, RandomStepsAgainstAModel) {
  Worker worker(*map_, 300, 2000, 1);
  for (int i = 0; i < 1500; ++i) ASSERT_EQ(worker.step(), "") << "step " << i;
  EXPECT_EQ(worker.read_all(), "");
}

// Threads share extents, but no page.
TEST_P(BlockMapTest, ThreadsOnPagesOfTheirOwn) {
  std::vector<std::thread> threads;
  std::array<std::string, 4> wrong;
  for (unsigned number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      Worker worker(*map_, number * 700, 700, number);
      worker.values_from(number * 1'000'000);
      for (int i = 0; i < 400 && wrong[number].empty(); ++i) wrong[number] = worker.step();
      if (wrong[number].empty()) wrong[number] = worker.read_all();
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& one : wrong) EXPECT_EQ(one, "");
}

TEST_P(BlockMapTest, AnEmptyExtentGivesItsSpaceBack) {
  Worker worker(*map_, 0, 2048, 1);
  for (PageNumber page = 0; page < 2048; page += 64) ASSERT_EQ(worker.write({page, 64}), "");
  const std::uint64_t full = blocks_in_store();
  EXPECT_GE(full, 2048u);
  map_->forget({0, 512});
  map_->forget({1024, 512});
  EXPECT_LE(blocks_in_store(), full - 1024);
  // One page at a time: too small for holes, until the last of the extent has gone.
  for (PageNumber page = 512; page < 1024; ++page) map_->forget({page, 1});
  EXPECT_LE(blocks_in_store(), full - 1536);
  map_->forget({1536, 512});
  EXPECT_EQ(blocks_in_store(), 0u);
}

TEST_P(BlockMapTest, PagesRestTogether) {
  Worker worker(*map_, 0, 1024, 1);
  for (PageNumber page = 1024; page > 0; page -= 64) ASSERT_EQ(worker.write({page - 64, 64}), "");
  for (PageNumber page = 1; page < 512; ++page) EXPECT_EQ(map_->slot_of(page), map_->slot_of(page - 1) + 1);
}

// The child ends with the number of the step that was wrong.
template <class Body>
pid_t forked(BlockMap& map, Body body) {
  map.lock_for_fork();
  const pid_t child = fork();
  if (child == 0) {
    map.unlock_in_child();
    _exit(body());
  }
  map.unlock_after_fork(child > 0);
  return child;
}

[[nodiscard]] int status_of(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child ? status : -1;
}

TEST_P(BlockMapTest, ParentAndChildWriteEachItsOwn) {
  if (!forks()) GTEST_SKIP() << "SKIPPED, NOT TESTED: " << GetParam() << " does not promise to survive fork()";
  auto worker = std::make_unique<Worker>(*map_, 100, 1000, 3);
  for (int i = 0; i < 200; ++i) ASSERT_EQ(worker->step(), "");
  for (int family = 0; family < 3; ++family) {
    const pid_t child = forked(*map_, [&] {
      worker->values_from(5'000'000);
      for (int i = 0; i < 200; ++i) {
        if (auto wrong = worker->step(); !wrong.empty()) return 1;
      }
      if (!worker->read_all().empty()) return 2;
      map_.reset();
      return 0;
    });
    for (int i = 0; i < 200; ++i) ASSERT_EQ(worker->step(), "");
    ASSERT_EQ(worker->read_all(), "");
    EXPECT_EQ(status_of(child), 0);
    ASSERT_EQ(worker->read_all(), "");
  }
}

TEST_P(BlockMapTest, AChildReadsWhatItsParentForgot) {
  if (!forks()) GTEST_SKIP() << "SKIPPED, NOT TESTED: " << GetParam() << " does not promise to survive fork()";
  Worker worker(*map_, 0, 1024, 3);
  for (PageNumber page = 0; page < 1024; page += 64) ASSERT_EQ(worker.write({page, 64}), "");
  int parent_done[2];
  ASSERT_EQ(pipe(parent_done), 0);
  const pid_t child = forked(*map_, [&] {
    char one;
    close(parent_done[1]);
    if (read(parent_done[0], &one, 1) != 0) return 3;
    return worker.read_all().empty() ? 0 : 1;
  });
  ASSERT_EQ(worker.forget({0, 1024}), "");
  for (PageNumber page = 0; page < 1024; page += 64) ASSERT_EQ(worker.write({page, 64}), "");
  ASSERT_EQ(worker.forget({256, 64}), "");
  close(parent_done[1]);
  EXPECT_EQ(status_of(child), 0);
  EXPECT_EQ(worker.read_all(), "");
  close(parent_done[0]);
}

// Grandchildren, and the parent gone before its child.
TEST_P(BlockMapTest, ThreeGenerations) {
  if (!forks()) GTEST_SKIP() << "SKIPPED, NOT TESTED: " << GetParam() << " does not promise to survive fork()";
  Worker worker(*map_, 0, 600, 3);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(worker.step(), "");
  const pid_t child = forked(*map_, [&] {
    worker.values_from(2'000'000);
    for (int i = 0; i < 50; ++i) {
      if (!worker.step().empty()) return 1;
    }
    const pid_t grandchild = forked(*map_, [&] {
      worker.values_from(3'000'000);
      for (int i = 0; i < 100; ++i) {
        if (!worker.step().empty()) return 1;
      }
      return worker.read_all().empty() ? 0 : 2;
    });
    for (int i = 0; i < 50; ++i) {
      if (!worker.step().empty()) return 4;
    }
    if (status_of(grandchild) != 0) return 5;
    return worker.read_all().empty() ? 0 : 6;
  });
  for (int i = 0; i < 100; ++i) ASSERT_EQ(worker.step(), "");
  EXPECT_EQ(status_of(child), 0);
  EXPECT_EQ(worker.read_all(), "");
}

// What a child referred to is free again when both have let go of it, and a failed fork leaves nothing behind.
TEST_P(BlockMapTest, SlotsAreGivenBackWhenBothAreGone) {
  if (!forks()) GTEST_SKIP() << "SKIPPED, NOT TESTED: " << GetParam() << " does not promise to survive fork()";
  Worker worker(*map_, 0, 512, 3);
  for (PageNumber page = 0; page < 512; page += 64) ASSERT_EQ(worker.write({page, 64}), "");
  for (int i = 0; i < 20; ++i) {
    const pid_t child = forked(*map_, [&] {
      if (i % 2 == 0 && !worker.write({64, 64}).empty()) return 1;
      map_.reset();
      return 0;
    });
    EXPECT_EQ(status_of(child), 0);
    ASSERT_EQ(worker.write({0, 64}), "");
    map_->lock_for_fork();
    map_->unlock_after_fork(false);
  }
  ASSERT_EQ(worker.read_all(), "");
  EXPECT_LE(blocks_in_store(), 512u + 128u) << "written again and again, but never by two at once";
  ASSERT_EQ(worker.forget({0, 512}), "");
  EXPECT_EQ(blocks_in_store(), 0u);
}

// compress+ gave wrong bytes to parent and child: each took the same free sectors.
TEST_P(BlockMapTest, AStoreThatDoesNotForkIsRefusedInTheChild) {
  Worker worker(*map_, 0, 64, 3);
  ASSERT_EQ(worker.write({0, 64}), "");
  const pid_t child = forked(*map_, [&] {
    const bool refused = !worker.write({0, 64}).empty() && !worker.read_all().empty();
    return refused == !forks() ? 0 : 1;
  });
  EXPECT_EQ(status_of(child), 0);
  EXPECT_EQ(worker.read_all(), "");
}

INSTANTIATE_TEST_SUITE_P(Stores, BlockMapTest,
                         testing::Values("mem:", "file:/var/tmp", "checksum+mem:", "compress+file:/var/tmp"),
                         [](const auto& one) {
                           std::string name = one.param;
                           name.resize(name.find(':'));
                           std::replace(name.begin(), name.end(), '+', '_');
                           return name;
                         });

}  // namespace
}  // namespace farheap::segment
