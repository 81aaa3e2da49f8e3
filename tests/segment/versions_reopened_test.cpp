// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is free is used again by an opening that commits once, and not while anybody may read what lies there.
#include <gtest/gtest.h>

#include "segment/versions.hpp"
#include "store/faulty_store.hpp"
#include "test_pages.hpp"
#include "tests/store/store_fixture.hpp"

namespace farheap::segment::versions_reopened_test {
namespace {

constexpr std::uint64_t kPages = 512;

class OneReader final : public VersionLeases {
 public:
  Status take(std::uint64_t commit) override { return reads = commit, Status{}; }
  Result<std::uint64_t> oldest() override { return reads; }
  std::uint64_t reads = kNobody;
};

class Reopened : public testing::Test {
 protected:
  void SetUp() override {
    store_ = test::open_or_fail("mem:", {.block_bytes = kPageBytes});
    ASSERT_TRUE(
        Versions::create(*store_, {.base_address = std::uint64_t{1} << 44, .capacity_pages = 1 << 20}, &reader_));
  }

  // Opens it, writes all pages, and commits once.
  void run(std::uint64_t value) {
    auto versions = Versions::open(*store_, &reader_);
    ASSERT_TRUE(versions) << versions.error().message();
    write(**versions, value);
    const Status committed = (*versions)->commit();
    ASSERT_TRUE(committed) << committed.error().message();
    const Status sound = (*versions)->check();
    ASSERT_TRUE(sound) << sound.error().message();
  }

  void write(Versions& versions, std::uint64_t value) {
    for (PageNumber first = 0; first < kPages; first += kMostPages) {
      for (std::uint32_t i = 0; i < kMostPages; ++i) pages_.set(i, first + i, value);
      const pager::Backing::Write one{{first, kMostPages}, pages_.data()};
      ASSERT_TRUE(versions.write({&one, 1}));
    }
  }

  void expect_pages(Versions& versions, std::uint64_t value) {
    for (PageNumber first = 0; first < kPages; first += kMostPages) {
      const pager::Backing::Read one{{first, kMostPages}, pages_.data()};
      ASSERT_TRUE(versions.read({&one, 1}));
      for (std::uint32_t i = 0; i < kMostPages; ++i) ASSERT_TRUE(pages_.has(i, first + i, value)) << first + i;
    }
  }

  [[nodiscard]] Superblock newest() { return read_superblock(*store_).value().content; }
  [[nodiscard]] std::uint64_t end_slot() { return newest().end_slot; }

  std::unique_ptr<Store> store_;
  OneReader reader_;
  Pages pages_;
};

TEST_F(Reopened, AHeapThatCommitsOnceEachTimeDoesNotGrow) {
  for (std::uint64_t round = 1; round <= 4; ++round) run(round);
  const std::uint64_t end = end_slot();
  EXPECT_LE(end, 4 * kPages);
  for (std::uint64_t round = 5; round <= 40; ++round) run(round);
  EXPECT_LE(end_slot(), end + end / 8);
  expect_pages(**Versions::open(*store_), 40);
}

TEST_F(Reopened, WhatAReaderHasStays) {
  for (std::uint64_t round = 1; round <= 4; ++round) run(round);
  const Superblock read = newest();
  reader_.reads = read.commit;
  const auto reader = Versions::at(*store_, read);
  for (std::uint64_t round = 5; round <= 12; ++round) {
    run(round);
    expect_pages(*reader, 4);
  }
  reader_.reads = VersionLeases::kNobody;
  const std::uint64_t end = end_slot();
  for (std::uint64_t round = 13; round <= 20; ++round) run(round);
  EXPECT_EQ(end_slot(), end) << "what was kept for the reader is used again";
}

// Either superblock alone leads to what was committed, at any time of the opening.
TEST_F(Reopened, BothSuperblocksLeadToWholeStates) {
  for (std::uint64_t round = 1; round <= 4; ++round) run(round);
  auto versions = Versions::open(*store_, &reader_);
  write(**versions, 5);
  for (std::uint64_t number = 0; number < kSuperblocks; ++number) {
    auto one = read_one_superblock(*store_, number);
    ASSERT_TRUE(one) << one.error().message();
    expect_pages(*Versions::at(*store_, *one), 4);
  }
  EXPECT_EQ(newest().time_ns, (*versions)->last_commit().time_ns);
  ASSERT_TRUE((*versions)->commit());
  const Superblock last = newest();
  auto before = read_one_superblock(*store_, 1 - last.commit % kSuperblocks);
  ASSERT_TRUE(before);
  expect_pages(*Versions::at(*store_, *before), 4);
  expect_pages(*Versions::at(*store_, last), 5);
}

TEST_F(Reopened, WhoOnlyOpensWritesNothing) {
  for (std::uint64_t round = 1; round <= 4; ++round) run(round);
  const std::uint64_t commit = newest().commit;
  auto versions = Versions::open(*store_, &reader_);
  expect_pages(**versions, 4);
  ASSERT_TRUE((*versions)->commit());
  EXPECT_EQ(newest().commit, commit);
}

// Whether the superblock of the same state went through is not known then: the number that it had is nobody else's.
TEST_F(Reopened, WhereTheSuperblockCannotBeRewrittenTheStoreGrows) {
  for (std::uint64_t round = 1; round <= 4; ++round) run(round);
  const Superblock before = newest();
  Store& below = *store_;
  store::FaultyStore faulty(std::move(store_), {});
  auto versions = Versions::open(faulty, &reader_);
  ASSERT_TRUE(versions);
  faulty.set_plan({.error = 1});
  for (std::uint32_t i = 0; i < kMostPages; ++i) pages_.set(i, i, 5);
  const pager::Backing::Write one{{0, kMostPages}, pages_.data()};
  EXPECT_FALSE((*versions)->write({&one, 1}));
  faulty.set_plan({});
  write(**versions, 5);
  EXPECT_GE((*versions)->last_commit().end_slot, before.end_slot);
  ASSERT_TRUE((*versions)->commit());
  const Superblock after = read_superblock(below).value().content;
  EXPECT_GE(after.commit, before.commit + 2);
  EXPECT_GT(after.end_slot, before.end_slot) << "it was not known who reads what";
  expect_pages(**versions, 5);
  expect_pages(*Versions::at(below, *read_one_superblock(below, 1 - after.commit % kSuperblocks)), 4);
}

}  // namespace
}  // namespace farheap::segment::versions_reopened_test
