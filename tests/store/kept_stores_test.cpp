// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kept stores from outside: found, listed, copied, removed; and what is none of ours is left alone.
#include <gmock/gmock.h>

#include "store/contents.hpp"
#include "store/heap_blocks.hpp"
#include "tests/store/store_fixture.hpp"

namespace farheap::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr StoreOptions kKeptStore{.lifetime = Lifetime::kKeep};

class KeptStores : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!is_in_build(GetParam())) GTEST_SKIP() << "NOT IN THIS BUILD: " << GetParam();
  }
  std::string uri(const std::string& name) const { return GetParam() + ":" + folder_.path() + "/" + name; }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  TemporaryFolder folder_;
};

TEST_P(KeptStores, AreFoundListedAndRemoved) {
  EXPECT_FALSE(*is_store_there(uri("a")));
  EXPECT_THAT(*list_stores(uri("")), IsEmpty());
  put_blocks(*open_or_fail(uri("b"), kKeptStore), 7, make_blocks(7, 3, 4096));
  (void)open_or_fail(uri("a"), {.block_bytes = 512, .lifetime = Lifetime::kKeep});
  (void)open_or_fail("checksum+" + uri("c"), kKeptStore);
  EXPECT_TRUE(*is_store_there(uri("a")));
  EXPECT_TRUE(*is_store_there("checksum+" + uri("c")));
  const auto all = list_stores(GetParam() + ":" + folder_.path());
  ASSERT_TRUE(all) << all.error().message();
  ASSERT_EQ(all->size(), 3u);
  EXPECT_EQ((*all)[0].uri, uri("a"));
  EXPECT_EQ((*all)[0].block_bytes, 512u);
  EXPECT_EQ((*all)[1].block_bytes, 4096u);
  EXPECT_EQ((*all)[1].lifetime, Lifetime::kKeep);
  EXPECT_EQ(list_stores(uri("b"))->size(), 1u);
  for (const char* name : {"a", "b", "c"}) EXPECT_TRUE(remove_store(uri(name)));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  EXPECT_EQ(remove_store(uri("a")).error().code, ErrorCode::kNotFound);
}

TEST_P(KeptStores, TheOneOfAFolder) {
  const std::string whole = GetParam() + ":" + folder_.path();
  EXPECT_FALSE(*is_store_there(whole));
  (void)open_or_fail(whole, kKeptStore);
  EXPECT_TRUE(*is_store_there(whole));
  EXPECT_EQ(list_stores(whole)->size(), 1u);
  EXPECT_TRUE(remove_store(whole));
  EXPECT_FALSE(*is_store_there(whole));
}

// Whatever it is, and whatever lies beside it.
TEST_P(KeptStores, WhatIsNoStoreIsNotRemoved) {
  std::ofstream(path("letter")) << "Dear Ada";
  std::ofstream(path("versions")) << "Dear Ada";
  std::ofstream(path("versions.versions")) << "first, second";
  std::ofstream(path("empty"));
  for (const char* name : {"letter", "versions", "empty"}) {
    EXPECT_FALSE(*is_store_there(uri(name))) << name;
    const auto removed = remove_store(uri(name));
    ASSERT_FALSE(removed) << name;
    EXPECT_NE(removed.error().code, ErrorCode::kNotFound) << name;
    EXPECT_TRUE(std::filesystem::exists(path(name))) << name;
  }
  EXPECT_THAT(*list_stores(GetParam() + ":" + folder_.path()), IsEmpty());
  EXPECT_EQ(list_stores(uri("nowhere/at/all/")).error().code, ErrorCode::kNotFound);
}

struct CopyCase {
  std::string name, from, to;
  std::size_t block_bytes = 4096;
};
class CopyOfAStore : public testing::TestWithParam<CopyCase> {};

TEST_P(CopyOfAStore, HasAllBlocksAndCounters) {
  if (!is_in_build(GetParam().from) || !is_in_build(GetParam().to)) GTEST_SKIP() << "NOT IN THIS BUILD";
  const TemporaryFolder folder;
  const auto expand = [&](std::string uri) {
    for (auto at = uri.find('@'); at != uri.npos; at = uri.find('@')) uri.replace(at, 1, folder.path());
    return uri;
  };
  const StoreOptions options{.block_bytes = GetParam().block_bytes, .lifetime = Lifetime::kKeep};
  const auto of = [&](const std::string& uri) {
    return open_or_fail(expand(uri),
                        uri.find("mem:") == uri.npos ? options : StoreOptions{.block_bytes = options.block_bytes});
  };
  const auto from = of(GetParam().from);
  const auto to = of(GetParam().to);
  const std::size_t bytes = options.block_bytes;
  // Roots, long runs, holes, single blocks, a far one, and one that is erased again.
  const std::pair<std::uint64_t, std::size_t> runs[] = {{0, 2}, {3, 700}, {1000, 1}, {1002, 1}, {123456, 9}, {9000, 4}};
  std::uint64_t blocks = 0;
  for (const auto& [first, count] : runs) {
    for (std::uint64_t at = 0; at < count; at += 64) {
      const auto here = std::min<std::size_t>(64, count - at);
      ASSERT_EQ(put_blocks(*from, first + at, make_blocks(first + at, here, bytes)).outcome, Outcome::kOk);
    }
    blocks += count;
  }
  ASSERT_TRUE(from->erase(9001, 2));
  ASSERT_TRUE(from->add("forwards", 12345678901));
  ASSERT_TRUE(from->add("backwards", -3));
  const auto copied = store::copy_contents(*from, *to);
  ASSERT_TRUE(copied) << copied.error().message();
  EXPECT_EQ(copied->blocks, blocks - 2);
  EXPECT_EQ(copied->counters, 2u);
  EXPECT_EQ(to->usage()->blocks, blocks - 2);
  for (const auto& [first, count] : runs) {
    for (std::uint64_t block = first; block < first + count; ++block) {
      const bool gone = block == 9001 || block == 9002;
      ASSERT_EQ(expect_blocks(*to, block, 1), gone ? Outcome::kAbsent : Outcome::kOk) << block;
    }
  }
  EXPECT_EQ(to->add("forwards", 0).value(), 12345678901);
  EXPECT_EQ(to->add("backwards", 0).value(), -3);
  EXPECT_EQ(store::copy_contents(*from, *to).error().code, ErrorCode::kConflict);  // not empty
}

INSTANTIATE_TEST_SUITE_P(Engines, CopyOfAStore,
                         testing::Values(CopyCase{"MemToMem", "mem:", "mem:"},
                                         CopyCase{"FileToLmdb", "file:@/a", "lmdb:@/b"},
                                         CopyCase{"LmdbToFile", "lmdb:@/a", "file:@/b"},
                                         CopyCase{"SectorsLmdbToLmdb", "lmdb:@/a", "lmdb:@/b", 512},
                                         CopyCase{"ChecksumToFile", "checksum+file:@/a", "file:@/b"},
                                         CopyCase{"SectorsChecksum", "checksum+lmdb:@/a", "checksum+file:@/b", 512},
                                         CopyCase{"SplitToFile", "pages=lmdb:@/a,sync=file:@/b", "file:@/c"},
                                         CopyCase{"LmdbToSplit", "lmdb:@/c", "pages=lmdb:@/a,sync=file:@/b"}),
                         [](const auto& one) { return one.param.name; });

TEST(CopyOfStores, IsRefusedWhereItCannotBeWhole) {
  const TemporaryFolder folder;
  const auto scratch = open_or_fail("file:" + folder.path());
  const auto to = open_or_fail("mem:");
  const auto untold = store::copy_contents(*scratch, *to);
  ASSERT_FALSE(untold);
  EXPECT_EQ(untold.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(untold.error().message(), HasSubstr("does not tell which blocks it has"));
  EXPECT_EQ(open_or_fail("compress+mem:")->runs_from(0).error().code, ErrorCode::kUnavailable);
  const auto other = open_or_fail("mem:", {.block_bytes = 512});
  EXPECT_EQ(store::copy_contents(*other, *to).error().code, ErrorCode::kInvalidArgument);
}

// Whatever ends it before: what is left is not taken for a whole one.
TEST(CopyOfStores, ThatIsBrokenOffIsRefusedInWords) {
  for (const std::string engine : {"file", "lmdb", "checksum+file"}) {
    if (!is_in_build(engine)) continue;
    const TemporaryFolder folder;
    const auto from = open_or_fail("mem:");
    for (std::uint64_t block = 0; block < 9; ++block) put_blocks(*from, block * 1000, make_blocks(block, 1, 4096));
    const std::string uri = engine + ":" + folder.path() + "/copy";
    const auto stopped = store::copy_contents(*from, *open_or_fail(uri, kKeptStore), {}, [] { return true; });
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code, ErrorCode::kUnavailable);
    const auto opened = open_store(uri, kKeptStore);
    ASSERT_FALSE(opened) << uri;
    EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(opened.error().message(), HasSubstr("a copy that was broken off"));
    EXPECT_THAT(opened.error().remedy, HasSubstr("farheap store rm"));
    EXPECT_TRUE(remove_store(uri));
    EXPECT_TRUE(store::copy_contents(*from, *open_or_fail(uri, kKeptStore)));
    EXPECT_EQ(open_or_fail(uri, kKeptStore)->usage()->blocks, 9u);
  }
}

TEST(CopyOfStores, WithoutARootLeavesNoMark) {
  const TemporaryFolder folder;
  const auto from = open_or_fail("mem:");
  put_blocks(*from, 7, make_blocks(7, 1, 4096));
  ASSERT_TRUE(store::copy_contents(*from, *open_or_fail("file:" + folder.path() + "/copy", kKeptStore)));
  const auto copy = open_or_fail("file:" + folder.path() + "/copy", kKeptStore);
  EXPECT_EQ(copy->usage()->blocks, 1u);
  EXPECT_EQ(expect_blocks(*copy, 7, 1), Outcome::kOk);
}

// One said that there was nothing of that name, and the other that there was something already.
TEST(TwoStores, OfWhichOneIsLostSayWhich) {
  const TemporaryFolder folder;
  const std::string pages = "file:" + folder.path() + "/pages", sync = "file:" + folder.path() + "/sync";
  const std::string both = "pages=" + pages + ",sync=" + sync;
  const auto expect_lost = [&](const std::string& lost) {
    const auto there = is_store_there(both);
    const auto opened = open_store(both, kKeptStore);
    ASSERT_FALSE(there);
    ASSERT_FALSE(opened);
    for (const Error& error : {there.error(), opened.error()}) {
      EXPECT_EQ(error.code, ErrorCode::kCorrupt);
      EXPECT_THAT(error.message(), HasSubstr(lost + " is not there"));
      EXPECT_THAT(error.remedy, HasSubstr("farheap store rm '" + both + "'"));
    }
    EXPECT_TRUE(remove_store(both));
    EXPECT_FALSE(*is_store_there(both));
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  };
  const auto make = [&] {
    const auto store = open_or_fail(both, kKeptStore);
    put_blocks(*store, 0, make_blocks(0, 5, 4096));
  };
  make();
  for (const char* file : {"/pages", "/pages.versions"}) ASSERT_TRUE(std::filesystem::remove(folder.path() + file));
  expect_lost("pages=" + pages);
  make();
  ASSERT_TRUE(remove_store(sync));
  expect_lost("sync=" + sync);
  (void)open_or_fail(pages, kKeptStore);  // whoever began to make both was stopped
  EXPECT_FALSE(*is_store_there(both));
  make();
  EXPECT_TRUE(*is_store_there(both));
}

// Who has a heap open has it open in one place.
TEST(CopyOfStores, LeavesOutWhoHasItOpen) {
  const auto from = open_or_fail("mem:");
  const auto to = open_or_fail("mem:");
  put_blocks(*from, store::kFirstLease, make_blocks(1, 1, 4096));
  put_blocks(*from, 5, make_blocks(5, 1, 4096));
  EXPECT_EQ(store::copy_contents(*from, *to)->blocks, 1u);
  EXPECT_EQ(expect_blocks(*to, store::kFirstLease, 1), Outcome::kAbsent);
}

INSTANTIATE_TEST_SUITE_P(Engines, KeptStores, testing::Values("file", "lmdb"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace farheap::test
