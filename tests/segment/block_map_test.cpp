// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The block map against a simple model, in threads and in forked families.
#include "segment/block_map.hpp"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <array>
#include <functional>
#include <thread>

#include "block_map_worker.hpp"

namespace farheap::segment {
namespace {

constexpr const char* kInMemory = "file:/dev/shm";

class BlockMapTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    struct statfs status{};
    if (GetParam() == kInMemory && (statfs("/dev/shm", &status) != 0 || status.f_type != TMPFS_MAGIC)) {
      GTEST_SKIP() << "SKIPPED, NOT TESTED: /dev/shm is no tmpfs here";
    }
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

TEST_P(BlockMapTest, RandomStepsAgainstAModel) {
  Worker worker(*map_, 300, 2000, 1);
  for (int i = 0; i < 1500; ++i) ASSERT_EQ(worker.step(), "") << "step " << i;
  EXPECT_EQ(worker.read_all(), "");
  const std::string_view store = GetParam();
  EXPECT_EQ(worker.found_at_rest() != 0, store == "mem:" || store == kInMemory);
}

TEST_P(BlockMapTest, SaysWhichPagesItHolds) {
  const std::vector<std::byte> bytes(2 * kPageBytes, std::byte{7});
  const pager::Backing::Write one{{510, 2}, bytes.data()};
  ASSERT_TRUE(map_->write({&one, 1}));
  map_->forget({511, 1});
  const auto first = map_->stored_from(0), second = map_->stored_from(512);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->count(), 1u);
  EXPECT_TRUE(first->test(510));
  EXPECT_TRUE(second->none());
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

// Each fork after writing begins a file; they are brought together when there are many.
TEST_P(BlockMapTest, ManyForksWithPagesFromBeforeEach) {
  if (!forks()) GTEST_SKIP() << "SKIPPED, NOT TESTED: " << GetParam() << " does not promise to survive fork()";
  Worker worker(*map_, 0, 4000, 5);
  for (int i = 0; i < 60; ++i) {
    for (int steps = 0; steps < 5; ++steps) ASSERT_EQ(worker.step(), "");
    const pid_t child = forked(*map_, [&] {
      for (int steps = 0; steps < 5; ++steps) {
        if (!worker.step().empty()) return 1;
      }
      return worker.read_all().empty() ? 0 : 2;
    });
    if (i % 3 != 0) {
      ASSERT_EQ(worker.step(), "") << "while the child lives";
    }
    ASSERT_EQ(status_of(child), 0) << "fork " << i;
  }
  EXPECT_EQ(worker.read_all(), "");
}

// A chain of children, each the parent of the next, each with pages from all that came before it.
TEST_P(BlockMapTest, ManyGenerations) {
  if (!forks()) GTEST_SKIP() << "SKIPPED, NOT TESTED: " << GetParam() << " does not promise to survive fork()";
  Worker worker(*map_, 0, 2000, 7);
  std::function<int(int)> live = [&](int left) {
    for (int steps = 0; steps < 5; ++steps) {
      if (!worker.step().empty()) return 1;
    }
    if (left == 0) return worker.read_all().empty() ? 0 : 2;
    const pid_t child = forked(*map_, [&] { return live(left - 1); });
    if (!worker.step().empty()) return 3;
    const int status = status_of(child);
    return status != 0 ? WEXITSTATUS(status) : worker.read_all().empty() ? 0 : 4;
  };
  EXPECT_EQ(live(40), 0);
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
                         testing::Values("mem:", "file:/var/tmp", "checksum+mem:", "compress+file:/var/tmp", kInMemory),
                         [](const auto& one) {
                           std::string name = one.param == kInMemory ? "tmpfs:" : one.param;
                           name.resize(name.find(':'));
                           std::replace(name.begin(), name.end(), '+', '_');
                           return name;
                         });

}  // namespace
}  // namespace farheap::segment
