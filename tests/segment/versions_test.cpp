// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The versions of a kept segment against a model: on every engine, reopened at any time, with failures.
#include "segment/versions.hpp"

#include <gtest/gtest.h>

#include "store/faulty_store.hpp"
#include "tests/store/store_fixture.hpp"
#include "versions_worker.hpp"

namespace farheap::segment::versions_test {
namespace {

constexpr Versions::Settings kSettings{.base_address = std::uint64_t{1} << 44,
                                       .capacity_pages = std::uint64_t{1} << 34};

std::unique_ptr<Store> open_kept(const std::string& uri) {
  const auto lifetime = uri == "mem:" ? Lifetime::kScratch : Lifetime::kKeep;
  auto store = open_store(uri, {.block_bytes = kPageBytes, .lifetime = lifetime});
  EXPECT_TRUE(store.has_value()) << store.error().message();
  return std::move(*store);
}

std::unique_ptr<Versions> expect_open(Store& store) {
  auto versions = Versions::open(store);
  EXPECT_TRUE(versions.has_value()) << versions.error().message();
  return versions ? std::move(*versions) : nullptr;
}

std::unique_ptr<Versions> expect_create(Store& store) {
  auto versions = Versions::create(store, kSettings);
  EXPECT_TRUE(versions.has_value()) << versions.error().message();
  return versions ? std::move(*versions) : nullptr;
}

std::string message(const Status& status) { return status ? "" : status.error().message(); }

class VersionsTest : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] std::string uri() const { return GetParam() + folder_.path() + "/heap"; }
  test::TemporaryFolder folder_;
};

TEST_P(VersionsTest, RandomStepsAgainstAModel) {
  auto store = open_kept(uri());
  auto versions = expect_create(*store);
  VersionsWorker worker(1);
  for (int i = 0; i < 250; ++i) {
    const std::string what = worker.step(*versions);
    ASSERT_FALSE(what.starts_with("!")) << what << ", step " << i;
    ASSERT_EQ(i % 20 == 0 ? worker.compare(*versions, worker.written()) : "", "") << "after " << what << ", step " << i;
    ASSERT_EQ(what == "commit" ? message(versions->check()) : "", "") << "step " << i;
    if (i % 50 != 49) continue;
    versions.reset();
    if (i % 100 == 99) {
      store.reset();
      store = open_kept(uri());
    }
    versions = expect_open(*store);
    ASSERT_NE(versions, nullptr);
    worker.reopened(worker.committed());
    ASSERT_EQ(worker.compare(*versions, worker.written()), "") << "reopened after step " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, VersionsTest, testing::Values("file:", "lmdb:", "checksum+file:"));

// Empty if it is at the last commit, or at one that was tried since.
std::string at_one_of(VersionsWorker& worker, Versions& versions) {
  std::string wrong = worker.compare(versions, worker.committed());
  for (const ModelState& state : worker.attempted()) {
    if (!wrong.empty()) wrong = worker.compare(versions, state);
  }
  return wrong;
}

// Errors, lost answers and a full store, at any call: the heap goes on in memory, the last commit stands.
TEST(VersionsFaults, TheLastCommitStands) {
  unsigned failures = 0, lost_commits = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    auto inner = open_kept("mem:");
    Store& below = *inner;
    store::FaultyStore store(std::move(inner), {});
    auto versions = expect_create(store);
    VersionsWorker worker(seed);
    for (int i = 0; i < 200; ++i) {
      store::FaultPlan plan{.seed = seed * 1000 + static_cast<unsigned>(i)};
      if (i % 3 == 0) plan.error = 0.02;
      if (i % 5 == 0) plan.unknown = 0.1;
      store.set_plan(plan);
      const std::string what = worker.step(*versions);
      store.set_plan({});
      if (what.starts_with("!")) ++lost_commits;
      if (!worker.attempted().empty()) {
        // Until a commit succeeds again, the process may end at any time.
        auto crashed = expect_open(below);
        ASSERT_NE(crashed, nullptr);
        ASSERT_EQ(at_one_of(worker, *crashed), "") << "seed " << seed << ", after " << what << ", step " << i;
        ASSERT_EQ(message(crashed->check()), "") << "seed " << seed << ", step " << i;
      }
      const std::string wrong = i % 20 == 0 ? worker.compare(*versions, worker.written()) : "";
      ASSERT_EQ(wrong, "") << "seed " << seed << ", step " << i;
      ASSERT_EQ(what == "commit" ? message(versions->check()) : "", "") << "seed " << seed << ", step " << i;
      if (i % 25 != 24 || !worker.attempted().empty()) continue;
      versions = expect_open(store);
      worker.reopened(worker.committed());
    }
    failures += worker.failures();
  }
  EXPECT_GT(failures, 100u);
  EXPECT_GT(lost_commits, 50u);
}

// A block of the books that could not be read while a page was noted left its old slot, or its new one, taken by
// nobody.
TEST(VersionsFaults, ASlotWasLostWhereTheBooksCouldNotBeRead) {
  auto inner = open_kept("mem:");
  store::FaultyStore store(std::move(inner), {});
  Pages pages;
  auto versions = expect_create(store);
  for (unsigned round = 1; round <= 100; ++round) {
    ASSERT_EQ(message(versions->snapshot("snapshot " + std::to_string(round))), "");
    versions = expect_open(store);
    ASSERT_NE(versions, nullptr);
    store.set_plan({.seed = round, .error = 0.5});
    const PageNumber first = round * 7919 % 1000;
    for (std::uint32_t i = 0; i < kMostPages; ++i) pages.set(i, first + i, round);
    const pager::Backing::Write one{{first, kMostPages}, pages.data()};
    for (int tries = 0; !versions->write({&one, 1});) ASSERT_LT(++tries, 1000);
    for (int tries = 0; !versions->forget(first, 1);) ASSERT_LT(++tries, 1000);
    store.set_plan({});
    ASSERT_EQ(message(versions->commit()), "");
    ASSERT_EQ(message(versions->check()), "") << "round " << round;
  }
  EXPECT_GT(store.faults(), 200u);
}

TEST(Versions, NothingToCommitWritesNothing) {
  auto store = open_kept("mem:");
  auto versions = expect_create(*store);
  const auto before = versions->last_commit().commit;
  ASSERT_EQ(message(versions->commit()), "");
  EXPECT_EQ(versions->last_commit().commit, before);
}

TEST(Versions, AStoreThatHoldsOneIsNotOverwritten) {
  auto store = open_kept("mem:");
  (void)expect_create(*store);
  const auto again = Versions::create(*store, kSettings);
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, ErrorCode::kConflict);
}

// Carries out what is written to the superblocks, and says that it failed.
class LyingStore final : public store::Decorator {
 public:
  using Decorator::Decorator;
  Status put(std::span<Put> batch) override {
    Status status = inner_->put(batch);
    if (batch[0].block >= kSuperblocks || !lies) return status;
    batch[0].outcome = Outcome::kFailed;
    return fail(ErrorCode::kIo, "cannot write", describe(), "it says so");
  }
  bool lies = false;
};

// What a failed commit may have left in the store for good is not written over.
TEST(Versions, ACommitThatSeemedToFailStaysWhole) {
  auto inner = open_kept("mem:");
  Store& below = *inner;
  LyingStore store("lying", std::move(inner));
  auto versions = expect_create(store);
  VersionsWorker worker(1);
  Pages pages;
  auto write = [&](std::uint64_t value) {
    pages.set(0, 3, value);
    const pager::Backing::Write one{{3, 1}, pages.data()};
    return message(versions->write({&one, 1}));
  };
  ASSERT_EQ(write(1), "");
  store.lies = true;
  EXPECT_FALSE(versions->commit().has_value());
  store.lies = false;
  ASSERT_EQ(write(2), "");
  ModelState landed;
  landed.pages[3] = 1;
  auto crashed = expect_open(below);
  EXPECT_EQ(worker.compare(*crashed, landed), "");
  EXPECT_EQ(message(crashed->check()), "");
  ASSERT_EQ(message(versions->commit()), "");
  landed.pages[3] = 2;
  crashed = expect_open(below);
  EXPECT_EQ(worker.compare(*crashed, landed), "");
  EXPECT_EQ(message(crashed->check()), "");
}

// One of the two superblocks is always the commit before, whole: it can be gone back to.
TEST(Versions, WithoutItsNewestSuperblockItOpensAtTheCommitBefore) {
  auto store = open_kept("mem:");
  auto versions = expect_create(*store);
  VersionsWorker worker(5);
  ModelState before = worker.committed();
  for (int i = 0; i < 300; ++i) {
    const ModelState last = worker.committed();
    const auto commit = versions->last_commit().commit;
    const std::string what = worker.step(*versions);
    const auto now = versions->last_commit().commit;
    if (now == commit + 1) before = last;
    if (now != commit + 1 || i % 4 != 0) continue;
    Pages newest, damaged;
    Get get;
    get.block = now % kSuperblocks;
    get.into = {newest.data(), kPageBytes};
    ASSERT_EQ(message(store->get({&get, 1})), "");
    std::memcpy(damaged.data(), newest.data(), kPageBytes);
    damaged.data()[100] ^= std::byte{1};
    Put put;
    put.block = get.block;
    put.from = {damaged.data(), kPageBytes};
    ASSERT_EQ(message(store->put({&put, 1})), "");
    auto old = expect_open(*store);
    ASSERT_NE(old, nullptr);
    EXPECT_EQ(old->last_commit().commit, commit);
    ASSERT_EQ(worker.compare(*old, before), "") << "after " << what << ", step " << i;
    ASSERT_EQ(message(old->check()), "") << "step " << i;
    put.from = {newest.data(), kPageBytes};
    ASSERT_EQ(message(store->put({&put, 1})), "");
    versions = expect_open(*store);  // the superblock has another version now
    worker.reopened(worker.committed());
  }
}

TEST(Versions, AnEmptyStoreHoldsNone) {
  auto store = open_kept("mem:");
  const auto versions = Versions::open(*store);
  ASSERT_FALSE(versions.has_value());
  EXPECT_EQ(versions.error().code, ErrorCode::kNotFound);
}

TEST(Versions, ASecondWriterIsRefused) {
  auto store = open_kept("mem:");
  auto one = expect_create(*store);
  auto other = expect_open(*store);
  Pages pages;
  pages.set(0, 7, 1);
  const pager::Backing::Write write{{7, 1}, pages.data()};
  ASSERT_EQ(message(one->write({&write, 1})), "");
  ASSERT_EQ(message(one->commit()), "");
  Status late = other->write({&write, 1});
  if (late) late = other->commit();
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, ErrorCode::kConflict);
}

// What is rewritten for ever does not make the store grow for ever.
TEST(Versions, SpaceIsUsedAgain) {
  auto store = open_kept("mem:");
  auto versions = expect_create(*store);
  Pages pages;
  std::uint64_t end = 0;
  for (std::uint64_t round = 1; round <= 200; ++round) {
    for (PageNumber first = 0; first < 1024; first += kMostPages) {
      for (std::uint32_t i = 0; i < kMostPages; ++i) pages.set(i, first + i, round);
      const pager::Backing::Write write{{first, kMostPages}, pages.data()};
      ASSERT_EQ(message(versions->write({&write, 1})), "");
    }
    ASSERT_EQ(message(versions->commit()), "");
    if (round == 20) end = versions->last_commit().end_slot;
  }
  EXPECT_LE(versions->last_commit().end_slot, end + end / 8);
  EXPECT_LE(end, 5000u);
}

}  // namespace
}  // namespace farheap::segment::versions_test
