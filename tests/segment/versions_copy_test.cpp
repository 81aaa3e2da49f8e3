// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A copy has all versions, is written in one sweep, can be worked with like its source, and is whole or nothing.
#include "segment/versions_copy.hpp"

#include <gtest/gtest.h>

#include "power_loss_store.hpp"
#include "tests/store/store_fixture.hpp"
#include "versions_worker.hpp"

namespace farheap::segment {
namespace {

constexpr Versions::Settings kSettings{.base_address = std::uint64_t{1} << 44,
                                       .capacity_pages = std::uint64_t{1} << 34};
constexpr std::array<std::byte, 16> kId{std::byte{7}};

std::unique_ptr<Store> open_kept(const std::string& uri) {
  const auto lifetime = uri == "mem:" ? Lifetime::kScratch : Lifetime::kKeep;
  auto store = open_store(uri, {.block_bytes = kPageBytes, .lifetime = lifetime});
  EXPECT_TRUE(store.has_value()) << store.error().message();
  return std::move(*store);
}

std::string message(const Status& status) { return status ? "" : status.error().message(); }

template <class Value>
Value must(Result<Value> result) {
  if (!result) {
    ADD_FAILURE() << result.error().message();
    abort();
  }
  return std::move(*result);
}

// As `versions` was at its last commit.
Status copy(Store& source, Versions& versions, Store& target) {
  const Superblock content = versions.last_commit();
  auto copy = VersionsCopy::begin(source, content, target, {});
  if (!copy) return fail(std::move(copy.error()));
  for (const Snapshot& one : must(versions.snapshots())) {
    if (Status status = (*copy)->add(one); !status) return status;
  }
  return (*copy)->finish({content.map, content.pages, content.commit, content.time_ns, kId});
}

void steps(VersionsWorker& worker, Versions& versions, int count) {
  for (int i = 0; i < count; ++i) {
    const std::string what = worker.step(versions);
    ASSERT_FALSE(what.starts_with("!")) << what << ", step " << i;
    ASSERT_EQ(what == "commit" ? message(versions.check()) : "", "") << "step " << i;
  }
}

class VersionsCopyTest : public testing::TestWithParam<std::pair<const char*, const char*>> {
 protected:
  test::TemporaryFolder folder_;
};

TEST_P(VersionsCopyTest, HasAllVersionsAndGoesOnLikeItsSource) {
  const bool is_fast = std::string_view(GetParam().first) == "mem:";  // no device waits
  auto source = open_kept(is_fast ? "mem:" : GetParam().first + folder_.path() + "/from");
  auto versions = must(Versions::create(*source, kSettings));
  VersionsWorker worker(3);
  for (int round = 0; round < (is_fast ? 30 : 2); ++round) {
    ASSERT_NO_FATAL_FAILURE(steps(worker, *versions, 30));
    auto target = open_kept(is_fast ? "mem:" : GetParam().second + folder_.path() + "/to" + std::to_string(round));
    ASSERT_EQ(message(copy(*source, *versions, *target)), "");
    auto copied = must(Versions::open(*target));
    EXPECT_EQ(worker.compare(*copied, worker.committed()), "");
    EXPECT_EQ(message(copied->check()), "");
    const Superblock was = versions->last_commit(), is = copied->last_commit();
    EXPECT_EQ(is.id, kId);
    EXPECT_EQ(std::tuple(is.commit, is.time_ns, is.pages, is.base_address, is.capacity_pages),
              std::tuple(was.commit, was.time_ns, was.pages, was.base_address, was.capacity_pages));
    const auto names = must(versions->snapshots()), same = must(copied->snapshots());
    ASSERT_EQ(names.size(), same.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ(std::tuple(same[i].commit, same[i].time_ns, same[i].pages, std::string(same[i].name)),
                std::tuple(names[i].commit, names[i].time_ns, names[i].pages, std::string(names[i].name)));
    }
    // The copy is the one that is worked with from now on.
    VersionsWorker other(17, 1000);
    other.reopened(worker.committed());
    ASSERT_NO_FATAL_FAILURE(steps(other, *copied, is_fast ? 100 : 40));
    EXPECT_EQ(other.compare(*copied, other.written()), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, VersionsCopyTest,
                         testing::Values(std::pair{"mem:", "mem:"}, std::pair{"file:", "lmdb:"},
                                         std::pair{"lmdb:", "checksum+file:"}));

void fill(Versions& versions, PageNumber first, std::uint32_t count, std::uint64_t value) {
  Pages bytes;
  for (std::uint32_t done = 0; done < count; done += kMostPages) {
    for (std::uint32_t i = 0; i < kMostPages; ++i) bytes.set(i, first + done + i, value);
    const pager::Backing::Write one{{first + done, kMostPages}, bytes.data()};
    ASSERT_EQ(message(versions.write({&one, 1})), "");
  }
}

TEST(VersionsCopy, PagesLieInTheOrderOfTheirAddressesAndNothingElseIsThere) {
  auto source = open_kept("mem:"), target = open_kept("mem:");
  auto versions = must(Versions::create(*source, kSettings));
  for (const std::uint64_t value : {1, 2, 3}) {
    for (int i = 31; i >= 0; --i) {  // backwards, so that it does not lie so
      fill(*versions, static_cast<PageNumber>(i) * 64, 64, value);
      ASSERT_EQ(message(versions->commit()), "");
    }
  }
  ASSERT_EQ(message(copy(*source, *versions, *target)), "");
  auto copied = must(Versions::open(*target));
  const Superblock content = copied->last_commit();
  const BlockTree map(*target, "the map", content.map);
  std::uint64_t last = 0, breaks = 0, pages = 0;
  ASSERT_EQ(message(map.for_each_block([&](const BlockTree::Visited& block) {
              for (std::size_t i = 0; block.words != nullptr && i < block.words->size(); ++i) {
                const SlotRef at((*block.words)[i]);
                if (at.is_nowhere()) continue;
                EXPECT_GT(at.slot(), last);
                if (last != 0 && at.slot() != last + 1) ++breaks;
                last = at.slot();
                ++pages;
              }
              return true;
            })),
            "");
  EXPECT_EQ(pages, 2048U);
  EXPECT_EQ(breaks, 3U);                          // the block of the map after each 512 pages
  EXPECT_EQ(content.taken_slots, 2048U + 5 + 1);  // and 5 of the map, one of the free space
}

// Deep maps: pages far apart, and a map that became deeper after a snapshot.
TEST(VersionsCopy, MapsMayBecomeDeeperFromVersionToVersion) {
  auto source = open_kept("mem:"), target = open_kept("mem:");
  auto versions = must(Versions::create(*source, kSettings));
  VersionsWorker worker(1);
  std::uint64_t value = 0;
  std::vector<PageNumber> firsts{0, 512 * 10, 512 * 300, PageNumber{1} << 26, PageNumber{1} << 33};
  for (const PageNumber first : firsts) {
    fill(*versions, first, 64, ++value);
    ASSERT_EQ(message(versions->snapshot("s" + std::to_string(value))), "");
  }
  ASSERT_EQ(message(versions->forget(0, 64)), "");
  ASSERT_EQ(message(versions->commit()), "");
  ASSERT_EQ(message(copy(*source, *versions, *target)), "");
  auto copied = must(Versions::open(*target));
  EXPECT_EQ(message(copied->check()), "");
  const auto has = [&](auto read, std::size_t i, bool there) {
    Pages bytes;
    const pager::Backing::Read run{{firsts[i], kMostPages}, bytes.data()};
    ASSERT_EQ(message(read(run)), "");
    for (std::uint32_t k = 0; k < kMostPages; ++k) {
      ASSERT_TRUE(there ? bytes.has(k, firsts[i] + k, i + 1) : bytes.is_zero(k)) << i << " " << k;
    }
  };
  const auto snapshots = must(copied->snapshots());
  for (std::size_t version = 0; version < snapshots.size(); ++version) {
    for (std::size_t i = 0; i < firsts.size(); ++i) {
      has([&](const auto& run) { return copied->read(snapshots[version], {&run, 1}); }, i, i <= version);
    }
  }
  for (std::size_t i = 0; i < firsts.size(); ++i) {
    has([&](const auto& run) { return copied->read({&run, 1}); }, i, i != 0);
  }
  // All of it goes when the snapshots go: the lists of dead slots are right.
  for (const Snapshot& one : snapshots) ASSERT_EQ(message(copied->remove(one.name)), "");
  EXPECT_EQ(message(copied->check()), "");
}

TEST(VersionsCopy, WhateverEndsItLeavesNothingOrAWholeCopy) {
  auto source = open_kept("mem:");
  auto versions = must(Versions::create(*source, kSettings));
  VersionsWorker worker(5);
  ASSERT_NO_FATAL_FAILURE(steps(worker, *versions, 60));
  ASSERT_FALSE(worker.committed().snapshots.empty());
  std::mt19937_64 random(1);
  PowerLossStore target;
  unsigned nothing = 0, whole = 0;
  target.changed = [&] {
    for (const auto left : {PowerLossStore::Left::kAll, PowerLossStore::Left::kSome, PowerLossStore::Left::kNone}) {
      PowerLossStore image(target.lost(left, random));
      auto opened = Versions::open(image);
      if (!opened || ((*opened)->last_commit().pages == 0 && (*opened)->last_commit().snapshot_count == 0)) {
        ++nothing;
        continue;
      }
      ++whole;
      EXPECT_EQ(worker.compare(**opened, worker.committed()), "");
      EXPECT_EQ(message((*opened)->check()), "");
    }
  };
  ASSERT_EQ(message(copy(*source, *versions, target)), "");
  target.changed();
  EXPECT_GT(nothing, 10U);
  EXPECT_GE(whole, 3U);
}

TEST(VersionsCopy, AVersionThatCannotBeReadIsLeftOutAndTheOthersAreWhole) {
  auto source = open_kept("mem:"), target = open_kept("mem:");
  auto versions = must(Versions::create(*source, kSettings));
  for (const std::uint64_t value : {1, 2, 3}) {
    fill(*versions, 0, 64, value);
    ASSERT_EQ(message(versions->snapshot("s" + std::to_string(value))), "");
  }
  const auto snapshots = must(versions->snapshots());
  const Superblock content = versions->last_commit();
  ASSERT_EQ(message(source->erase(snapshots[1].map.at.slot(), 1)), "");
  auto copy = must(VersionsCopy::begin(*source, content, *target, {}));
  EXPECT_TRUE(copy->add(snapshots[0]));
  const Status lost = copy->add(snapshots[1]);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(copy->add(snapshots[2]));
  ASSERT_EQ(message(copy->finish({content.map, content.pages, content.commit, content.time_ns, kId})), "");
  auto copied = must(Versions::open(*target));
  EXPECT_EQ(message(copied->check()), "");
  const auto left = must(copied->snapshots());
  ASSERT_EQ(left.size(), 2U);
  EXPECT_STREQ(left[1].name, "s3");
  Pages bytes;
  const pager::Backing::Read run{{0, kMostPages}, bytes.data()};
  ASSERT_EQ(message(copied->read(left[0], {&run, 1})), "");
  EXPECT_TRUE(bytes.has(63, 63, 1));
  ASSERT_EQ(message(copied->read({&run, 1})), "");
  EXPECT_TRUE(bytes.has(63, 63, 3));
}

}  // namespace
}  // namespace farheap::segment
