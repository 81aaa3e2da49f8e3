// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cleaner: pages that commits have scattered lie together again, and hold what they held.
#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <random>

#include "segment/idle_cleaner.hpp"
#include "segment/versions.hpp"
#include "store/aligned_buffer.hpp"
#include "store/decorator.hpp"

namespace farheap::segment::versions_gather_test {
namespace {

using base::kPageBytes;
using pager::Backing;
using Page = Versions::Page;

constexpr Page kPages = 8 * Versions::kPagesPerLeaf;

// Counts the pieces in which reads come.
class CountingStore final : public store::Decorator {
 public:
  explicit CountingStore(std::unique_ptr<Store> inner) : Decorator("counting", std::move(inner)) {}
  Status get(std::span<Get> batch) override {
    entries_ += batch.size();
    return inner_->get(batch);
  }
  std::size_t take_count() { return entries_.exchange(0); }

 private:
  std::atomic<std::size_t> entries_ = 0;
};

class VersionsGatherTest : public testing::Test {
 protected:
  void write(Page first, std::uint32_t count, int value) {
    for (std::uint32_t i = 0; i < count; ++i) {
      std::memset(buffer_.part(i * kPageBytes, kPageBytes).data(), value, kPageBytes);
      model_[first + i] = value;
    }
    const Backing::Write one{{first, count}, buffer_.part(0, count * kPageBytes).data()};
    const Status status = versions_->write({&one, 1});
    ASSERT_TRUE(status) << status.error().message();
  }
  void commit() {
    const Status status = versions_->commit();
    ASSERT_TRUE(status) << status.error().message();
  }
  // All pages are as the model says; returns in how many pieces they were read.
  std::size_t sweep() {
    store_.take_count();
    for (Page first = 0; first < kPages; first += Versions::kPagesPerLeaf) {
      const Backing::Read one{{first, Versions::kPagesPerLeaf}, buffer_.part(0, kLeafBytes).data()};
      EXPECT_TRUE(versions_->read({&one, 1}));
      for (std::size_t i = 0; i < Versions::kPagesPerLeaf; ++i) {
        const std::byte* const bytes = one.into + i * kPageBytes;
        EXPECT_EQ(static_cast<int>(bytes[0]), model_[first + i]) << "page " << first + i;
        EXPECT_EQ(std::memcmp(bytes, bytes + 1, kPageBytes - 1), 0) << "page " << first + i;
      }
    }
    return store_.take_count();
  }
  // As a program does that changes a little everywhere, and commits.
  void scatter() {
    for (Page page = 0; page < kPages; page += 32) write(page, 32, 1);
    commit();
    std::mt19937 random(7);
    for (int round = 0; round < 40; ++round) {
      for (int i = 0; i < 60; ++i) write(random() % kPages, 1, 2 + round);
      commit();
    }
  }
  std::uint64_t gather_all() {
    const auto leaves = versions_->scattered_leaves().value();
    std::uint64_t moved = 0;
    for (const std::uint64_t leaf : leaves) {
      moved += versions_->gather(leaf, buffer_.part(0, kLeafBytes).data()).value();
    }
    return moved;
  }

  static constexpr std::size_t kLeafBytes = Versions::kPagesPerLeaf * kPageBytes;
  CountingStore store_{std::move(*open_store("mem:", {.block_bytes = kPageBytes}))};
  std::unique_ptr<Versions> versions_ = std::move(*Versions::create(store_, {.capacity_pages = 1 << 20}));
  store::AlignedBuffer buffer_{kLeafBytes};
  std::vector<int> model_ = std::vector<int>(kPages);
};

TEST_F(VersionsGatherTest, WhatWasScatteredLiesTogetherAgain) {
  scatter();
  const std::size_t scattered = sweep();
  EXPECT_GT(gather_all(), kPages / 2);
  const std::size_t gathered = sweep();
  EXPECT_LT(gathered * 5, scattered) << gathered << " pieces instead of " << scattered;
  commit();
  EXPECT_EQ(sweep(), gathered);
  EXPECT_TRUE(versions_->scattered_leaves().value().empty());
  const Status sound = versions_->check();
  EXPECT_TRUE(sound) << sound.error().message();
  versions_ = std::move(*Versions::open(store_));
  EXPECT_LT(sweep(), scattered / 2);
}

TEST_F(VersionsGatherTest, SnapshotsStayAsTheyWere) {
  scatter();
  ASSERT_TRUE(versions_->snapshot("before"));
  const auto then = model_;
  for (Page page = 0; page < kPages; page += 3) write(page, 1, 99);
  commit();
  gather_all();
  commit();
  sweep();
  const auto all = versions_->snapshots().value();
  ASSERT_EQ(all.size(), 1u);
  for (Page page = 0; page < kPages; page += 5) {
    const Backing::Read one{{page, 1}, buffer_.part(0, kPageBytes).data()};
    ASSERT_TRUE(versions_->read(all[0], {&one, 1}));
    ASSERT_EQ(static_cast<int>(*one.into), then[page]);
  }
  EXPECT_TRUE(versions_->check());
  ASSERT_TRUE(versions_->remove("before"));
  EXPECT_TRUE(versions_->check());
  sweep();
}

TEST_F(VersionsGatherTest, WhatWasNotCommittedIsGatheredToo) {
  scatter();
  for (Page page = 1; page < kPages; page += 7) write(page, 1, 77);
  gather_all();
  for (Page page = 1; page < kPages; page += 14) write(page, 1, 78);
  sweep();
  commit();
  sweep();
  EXPECT_TRUE(versions_->check());
}

TEST_F(VersionsGatherTest, IdleTimeIsUsed) {
  scatter();
  const std::size_t scattered = sweep();
  {
    IdleCleaner cleaner(*versions_);
    cleaner.begin_commit();
    cleaner.end_commit();
    for (int looks = 0; looks < 600 && sweep() * 5 >= scattered; ++looks) usleep(50'000);
  }
  EXPECT_LT(sweep() * 5, scattered);
  commit();
  EXPECT_TRUE(versions_->check());
}

}  // namespace
}  // namespace farheap::segment::versions_gather_test
