// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads of a kept segment beside writes and commits of it.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "segment/versions.hpp"
#include "store/aligned_buffer.hpp"
#include "store/decorator.hpp"

namespace farheap::segment {
namespace {

using base::kPageBytes;
using pager::Backing;

// sync() waits until somebody lets it go on.
class GateStore final : public store::Decorator {
 public:
  explicit GateStore(std::unique_ptr<Store> inner) : Decorator("gate", std::move(inner)) {}
  Status sync() override {
    std::unique_lock lock(mutex_);
    waiting_ = closed_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !closed_; });
    waiting_ = false;
    return inner_->sync();
  }
  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  void wait_for_a_sync() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_; });
  }
  void open() {
    std::lock_guard lock(mutex_);
    closed_ = false;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  bool waiting_ = false;
};

std::unique_ptr<Store> memory() { return std::move(*open_store("mem:", {.block_bytes = kPageBytes})); }

class VersionsThreadsTest : public testing::Test {
 protected:
  void write(Versions::Page page, int value) {
    const store::AlignedBuffer buffer(kPageBytes);
    std::byte* const bytes = buffer.part(0, kPageBytes).data();
    std::memset(bytes, value, kPageBytes);
    const Backing::Write one{{page, 1}, bytes};
    const Status status = versions_->write({&one, 1});
    ASSERT_TRUE(status) << status.error().message();
  }
  // -1: it is torn or cannot be read.
  [[nodiscard]] int read(Versions::Page page) const {
    const store::AlignedBuffer buffer(kPageBytes);
    std::byte* const bytes = buffer.part(0, kPageBytes).data();
    const Backing::Read one{{page, 1}, bytes};
    if (!versions_->read({&one, 1})) return -1;
    return std::memcmp(bytes, bytes + 1, kPageBytes - 1) == 0 ? static_cast<int>(bytes[0]) : -1;
  }

  GateStore store_{memory()};
  std::unique_ptr<Versions> versions_ = std::move(*Versions::create(store_, {.capacity_pages = 1 << 20}));
};

TEST_F(VersionsThreadsTest, AReadDoesNotWaitForACommit) {
  write(1, 7);
  store_.close();
  Status committed;
  std::thread committer([&] { committed = versions_->commit(); });
  store_.wait_for_a_sync();
  EXPECT_EQ(read(1), 7);
  EXPECT_EQ(read(100'000), 0);
  EXPECT_EQ(versions_->last_commit().pages, 0u);
  store_.open();
  committer.join();
  EXPECT_TRUE(committed);
  EXPECT_EQ(versions_->last_commit().pages, 1u);
}

TEST_F(VersionsThreadsTest, ReadsBesideWritesCommitsAndSnapshots) {
  constexpr Versions::Page kStill = 700;  // pages that do not change; the next ones do
  for (Versions::Page page = 0; page < kStill; ++page) write(page, static_cast<int>(1 + page % 200));
  ASSERT_TRUE(versions_->commit());
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&, reader] {
      for (std::uint64_t i = 0; !done; ++i) {
        const Versions::Page page = (i * 37 + static_cast<std::uint64_t>(reader)) % kStill;
        if (read(page) != static_cast<int>(1 + page % 200)) ++wrong;
        if (!versions_->stored_from(nullptr, 0)) ++wrong;
      }
    });
  }
  for (int round = 0; round < 60; ++round) {
    for (int i = 0; i < 20; ++i) write(kStill + static_cast<Versions::Page>(round * 31 + i * 7) % 900, 1 + round);
    if (round % 7 == 3) {
      ASSERT_TRUE(versions_->forget(kStill + 100, 200));
    }
    if (round % 10 == 9) {
      ASSERT_TRUE(versions_->snapshot("s" + std::to_string(round)));
    }
    if (round % 20 == 15) {
      ASSERT_TRUE(versions_->remove("s" + std::to_string(round / 20 * 20 + 9)));
    }
    ASSERT_TRUE(versions_->commit());
  }
  done = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  const Status sound = versions_->check();
  EXPECT_TRUE(sound) << sound.error().message();
}

}  // namespace
}  // namespace farheap::segment
