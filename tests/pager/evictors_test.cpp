// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/evictors.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "array_world.hpp"

namespace farheap::pager {
namespace {

class EvictorsTest : public ::testing::Test {
 protected:
  testing::FixedBudget budget_{100'000};
  Room room_{budget_};
};

TEST_F(EvictorsTest, OneTakesAllWhileNobodyWaitsAndAPartWhenSomebodyDoes) {
  const Evictors four(4, room_);
  EXPECT_EQ(four.share_of(1000), 1000u);
  room_.begin_wait();
  EXPECT_EQ(four.share_of(1000), 250u);
  EXPECT_EQ(four.share_of(100), Evictors::kWorthHelp);
  EXPECT_EQ(four.share_of(7), 7u);
  EXPECT_EQ(four.share_of(0), 0u);
  EXPECT_EQ(Evictors(1, room_).share_of(1000), 1000u);
}

// The first is woken for anything; another one when the first is awake, and there is enough that nobody brings out.
TEST_F(EvictorsTest, ASecondOneIsCalledWhenThereIsMoreThanTheFirstHasInHand) {
  base::Mutex mutex;
  Evictors two(2, room_);
  bool sleeps = false, called = false;
  std::thread helper([&] {
    base::LockGuard lock(mutex);
    sleeps = true;
    while (!called) two.sleep(1, mutex, std::chrono::hours(1));
  });
  const auto it_sleeps = [&] {
    base::LockGuard lock(mutex);
    return sleeps;
  };
  while (!it_sleeps()) std::this_thread::yield();
  EXPECT_FALSE(two.sleeps());  // the first
  {
    base::LockGuard lock(mutex);
    room_.came(100'000);
    ASSERT_GE(room_.excess(), Evictors::kWorthHelp);
    called = true;
    two.wake();
  }
  helper.join();
}

// A store that lets nobody go before a second write has come: with one evictor the program would wait for ever.
class PairedBacking final : public testing::MapBacking {
 public:
  PairedBacking() : MapBacking({}, 1) {}
  Status write(std::span<const Write> runs) override {
    if (!is_over_) {
      std::unique_lock lock(mutex_);
      ++here_;
      came_.notify_all();
      came_.wait(lock, [&] { return here_ >= 2 || is_over_; });
      is_over_ = true;
      came_.notify_all();
    }
    return MapBacking::write(runs);
  }

 private:
  std::atomic<bool> is_over_{false};
  std::mutex mutex_;
  std::condition_variable came_;
  int here_ = 0;
};

TEST(Eviction, WhileOneEvictorWritesAnotherOneDoesToo) {
  testing::WorldOptions options{.pages = 8192, .memory_pages = 2048, .read_ahead_pages = 0, .evictors = 2};
  options.near = [](Backing&, Budget&, base::RunCounters&) {
    return testing::WorldOptions::Near{std::make_unique<PairedBacking>()};
  };
  testing::World world(options);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&world, thread] {
      std::vector<testing::PageBytes> buffer(512);
      for (PageNumber page = thread; page < 8192; page += 4) {
        world.touch(page, true, buffer[0].data(),
                    [&](testing::PageBytes& bytes) { bytes.fill(static_cast<std::byte>(page % 251 + 1)); });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<testing::PageBytes> buffer(512);
  for (PageNumber page = 0; page < 8192; ++page) {
    world.touch(page, false, buffer[0].data(), [&](testing::PageBytes& bytes) {
      EXPECT_EQ(bytes[4095], static_cast<std::byte>(page % 251 + 1)) << page;
    });
  }
  world.stop();
  EXPECT_EQ(world.pager->check(), "");
  EXPECT_EQ(world.view.broken_rules, 0);
}

}  // namespace
}  // namespace farheap::pager
