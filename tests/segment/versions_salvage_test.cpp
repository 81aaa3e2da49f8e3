// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every byte of all books is damaged in turn: what is read is right or an error, and what is whole is found again.
#include "segment/versions_salvage.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/log.hpp"
#include "farheap/store.hpp"
#include "test_pages.hpp"

namespace farheap::segment::versions_salvage_test {
namespace {

constexpr PageNumber kPages[] = {0, 1, 2, 3, 513};
using Contents = std::array<std::uint64_t, std::size(kPages)>;  // values; 0: zeros

std::string message(const Status& status) { return status ? "" : status.error().message(); }

std::unique_ptr<Store> make_store() { return std::move(*open_store("mem:", {.block_bytes = kPageBytes})); }

class SalvageTest : public testing::Test {
 protected:
  // Snapshots one and two and two commits after them; each changes all pages but one.
  void SetUp() override {
    base::set_log_level(base::LogLevel::kError);
    auto versions = std::move(*Versions::create(*store_, {.base_address = 1 << 30, .capacity_pages = 1 << 30}));
    for (std::uint64_t round = 1; round <= 4; ++round) {
      for (std::size_t i = 0; i < now_.size(); ++i) {
        if (i == round) continue;
        Pages bytes;
        bytes.set(0, kPages[i], round);
        const pager::Backing::Write one{{kPages[i], 1}, bytes.data()};
        ASSERT_EQ(message(versions->write({&one, 1})), "");
        now_[i] = round;
      }
      const std::string name = round == 1 ? "one" : "two";
      ASSERT_EQ(message(round <= 2 ? versions->snapshot(name) : versions->commit()), "");
      contents_[{round <= 2 ? name : "", versions->last_commit().commit}] = now_;
    }
    newest_ = versions->last_commit();
    find_books();
  }
  // The superblocks and all blocks of trees that they lead to.
  void find_books() {
    const std::vector<Superblock> superblocks = *whole_superblocks(*store_);
    for (const Superblock& one : superblocks) {
      books_.insert(one.commit % kSuperblocks);
      std::vector<BlockTree::Root> roots{one.map, one.space, one.snapshots, one.dead};
      const auto snapshots = *Versions::at(*store_, one)->snapshots();
      for (const Snapshot& past : snapshots) roots.insert(roots.end(), {past.map, past.dead.tree});
      for (const auto& root : roots) {
        ASSERT_EQ(message(BlockTree(*store_, "", root).for_each_block([&](const BlockTree::Visited& block) {
                    books_.insert(block.at.slot());
                    return true;
                  })),
                  "");
      }
    }
  }
  void flip(std::uint64_t block, std::size_t byte, std::byte bits) {
    Get get{.block = block, .into = {block_.data(), kPageBytes}};
    ASSERT_EQ(message(store_->get({&get, 1})), "");
    block_.data()[byte] ^= bits;
    Put put;
    put.block = block;
    put.from = {block_.data(), kPageBytes};
    ASSERT_EQ(message(store_->put({&put, 1})), "");
  }
  // Empty if it is an error or right.
  template <class Read>
  std::string wrong(const Contents& wanted, Read read) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const pager::Backing::Read run{{kPages[i], 1}, block_.data()};
      if (!read(run)) continue;
      if (!(wanted[i] == 0 ? block_.is_zero(0) : block_.has(0, kPages[i], wanted[i]))) {
        return "page " + std::to_string(kPages[i]) + " is wrong";
      }
    }
    return {};
  }
  // All versions of a segment as they were made, as far as they can be read.
  std::string wrong_version(Versions& versions) {
    const auto newest = std::ranges::find_if(
        contents_, [&](const auto& one) { return one.first.commit == versions.last_commit().commit; });
    if (newest == contents_.end()) return "it opens at commit " + std::to_string(versions.last_commit().commit);
    auto why = wrong(newest->second, [&](const auto& run) { return versions.read({&run, 1}).has_value(); });
    const auto snapshots = versions.snapshots();
    for (std::size_t i = 0; why.empty() && snapshots && i < snapshots->size(); ++i) {
      const Snapshot& one = (*snapshots)[i];
      const auto made = contents_.find({one.name, one.commit});
      if (made == contents_.end()) return "a snapshot that was never made";
      why = wrong(made->second, [&](const auto& run) { return versions.read(one, {&run, 1}).has_value(); });
    }
    return why;
  }

  std::unique_ptr<Store> store_ = make_store();
  Pages block_;
  Contents now_{};
  struct ByName {
    bool operator()(const VersionName& a, const VersionName& b) const {
      return std::tie(a.snapshot, a.commit) < std::tie(b.snapshot, b.commit);
    }
  };
  std::map<VersionName, Contents, ByName> contents_;
  Superblock newest_;
  std::set<std::uint64_t> books_;
};

TEST_F(SalvageTest, EveryByteOfTheBooksIsDamagedInTurn) {
  unsigned found = 0, harmless = 0, lost = 0;
  for (const std::uint64_t block : books_) {
    for (std::size_t byte = 0; byte < kPageBytes; ++byte) {
      const std::byte bits{static_cast<unsigned char>(1U << byte % 8)};
      ASSERT_NO_FATAL_FAILURE(flip(block, byte, bits));
      const std::string where = "block " + std::to_string(block) + ", byte " + std::to_string(byte);
      if (auto versions = Versions::open(*store_)) {
        ++((*versions)->check() ? harmless : found);
        ASSERT_EQ(wrong_version(**versions), "") << where;
      } else {
        ASSERT_FALSE(versions.error().message().empty());
        ++found;
      }
      if (byte % 128 == 0 &&
          !(block < kSuperblocks && byte >= 8 && byte < 12)) {  // there is the format: it may look newer
        auto target = make_store();
        auto salvaged = salvage(*store_, *target, {}, {});
        ASSERT_TRUE(salvaged) << where << ": " << salvaged.error().message();
        auto made = Versions::open(*target);
        ASSERT_TRUE(made) << where;
        ASSERT_EQ(message((*made)->check()), "") << where;
        ASSERT_EQ(wrong_version(**made), "") << where;
        EXPECT_EQ((*made)->last_commit().id, newest_.id);
        lost += salvaged->lost.empty() ? 0 : 1;
      }
      ASSERT_NO_FATAL_FAILURE(flip(block, byte, bits));
    }
  }
  EXPECT_GT(found, 10'000U);
  EXPECT_GT(lost, 100U);
  // A superblock that is damaged leaves the other one; and there are blocks that the older one leads to alone.
  EXPECT_GT(harmless, 2 * kPageBytes - 100);
}

TEST_F(SalvageTest, TheStoreEndsAtAnyBlock) {
  unsigned salvaged_some = 0;
  for (std::uint64_t end = newest_.end_slot; end-- > 0;) {
    ASSERT_EQ(message(store_->erase(end, 1)), "");
    auto versions = Versions::open(*store_);
    if (versions) {
      ASSERT_EQ(wrong_version(**versions), "") << end;
    }
    auto target = make_store();
    auto salvaged = salvage(*store_, *target, {}, {});
    if (!salvaged) {
      EXPECT_EQ(salvaged.error().code, ErrorCode::kCorrupt);
      continue;
    }
    ++salvaged_some;
    auto made = Versions::open(*target);
    ASSERT_TRUE(made) << end;
    ASSERT_EQ(message((*made)->check()), "") << end;
  }
  EXPECT_GT(salvaged_some, 5U);
}

TEST_F(SalvageTest, EachBookCostsWhatItTellsOf) {
  const auto snapshots = *Versions::at(*store_, newest_)->snapshots();
  const std::uint64_t before = newest_.commit - 1;
  const struct {
    const char* what;
    SlotRef at;
    std::size_t lost;
    std::vector<VersionName> kept;
  } cases[] = {
      {"the newest map", newest_.map.at, 1, {{"one", snapshots[0].commit}, {"two", snapshots[1].commit}, {"", before}}},
      {"a snapshot's map", snapshots[0].map.at, 1, {{"two", snapshots[1].commit}, {"", newest_.commit}}},
      {"the free space",
       newest_.space.at,
       0,
       {{"one", snapshots[0].commit}, {"two", snapshots[1].commit}, {"", newest_.commit}}},
      {"dead slots",
       newest_.dead.at,
       0,
       {{"one", snapshots[0].commit}, {"two", snapshots[1].commit}, {"", newest_.commit}}},
      {"a snapshot's dead slots",
       snapshots[1].dead.tree.at,
       0,
       {{"one", snapshots[0].commit}, {"two", snapshots[1].commit}, {"", newest_.commit}}},
      {"the table of snapshots", newest_.snapshots.at, 2, {{"", newest_.commit}}},
  };
  for (const auto& one : cases) {
    ASSERT_FALSE(one.at.is_nowhere()) << one.what;
    ASSERT_NO_FATAL_FAILURE(flip(one.at.slot(), 77, std::byte{1}));
    EXPECT_FALSE((*Versions::open(*store_))->check()) << one.what;
    auto target = make_store();
    const auto salvaged = salvage(*store_, *target, {}, {});
    ASSERT_TRUE(salvaged) << one.what << ": " << salvaged.error().message();
    EXPECT_EQ(salvaged->lost.size(), one.lost) << one.what;
    EXPECT_EQ(salvaged->kept, one.kept) << one.what;
    EXPECT_EQ(wrong_version(**Versions::open(*target)), "") << one.what;
    ASSERT_NO_FATAL_FAILURE(flip(one.at.slot(), 77, std::byte{1}));
  }
}

}  // namespace
}  // namespace farheap::segment::versions_salvage_test
