// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// bigtable: over an emulator that dies, freezes, and answers through a line that is cut.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "engines/bigtable/client.hpp"
#include "engines/space/version_clock.hpp"
#include "tests/engines/cutting_proxy.hpp"
#include "tests/engines/engine_fixture.hpp"
#include "tests/store/servers.hpp"

namespace farheap::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::size_t kBlock = 4096;

class BigtableFaults : public testing::Test {
 protected:
  void SetUp() override {
    auto servers = start_bigtable();
    if (!servers) GTEST_SKIP() << "NOT TESTED: " << servers.error().message();
    servers_ = std::move(*servers);
    servers_.set_environment();
  }
  TestServer& server() { return *servers_.members.front(); }
  static std::unique_ptr<Store> open(const std::string& parameters = "", Lifetime lifetime = Lifetime::kKeep) {
    auto opened = open_here(engines::open_bigtable, "bigtable://p/i/t/n" + parameters, {.lifetime = lifetime});
    if (!opened) throw std::runtime_error(opened.error().message());
    return std::move(*opened);
  }
  // The table itself, for what a store does not do.
  static std::unique_ptr<engines::bigtable::Client> table() {
    const auto parsed = store::parse_uri("bigtable://p/i/t/n", store::vocabulary());
    return std::move(*engines::bigtable::Client::open(parsed->place, store::Parameters(*parsed, "bigtable")));
  }
  static void set_cell(const std::string& key, std::string_view column, const std::string& value) {
    engines::bigtable::api::MutateRowRequest request;
    engines::bigtable::set_cell(*request.mutable_mutations(), column, std::int64_t{4000000000000000000}, value);
    ASSERT_TRUE(table()->mutate(key, request).ok());
  }

  TestServers servers_;
};

TEST_F(BigtableFaults, AServerThatRestartsEmptyIsToldNotReadAsZeros) {
  auto store = open();
  (void)put_blocks(*store, 1, make_blocks(1, 3, kBlock));
  server().kill();
  ASSERT_TRUE(server().start_again());
  Bytes into(kBlock);
  Get get{.block = 1, .into = into};
  const auto got = store->get({&get, 1});
  EXPECT_THAT(words_of(got), HasSubstr("the server lost the table"));
  EXPECT_EQ(get.outcome, Outcome::kCorrupt);
  const auto page = make_blocks(1, 1, kBlock);
  Put put{.block = 1, .from = page};
  EXPECT_THAT(words_of(store->put({&put, 1})), HasSubstr("lost"));
  EXPECT_THAT(words_of(store->add("n", 1)), HasSubstr("lost"));
  EXPECT_THAT(words_of(store->sync()), HasSubstr("lost"));
}

TEST_F(BigtableFaults, AStoreThatWasMadeAnewBehindTheConnectionIsAnotherOne) {
  auto store = open();
  (void)put_blocks(*store, 1, make_blocks(1, 3, kBlock));
  server().kill();
  ASSERT_TRUE(server().start_again());
  auto other = open();  // makes the table and the store again
  Bytes into(kBlock);
  Get get{.block = 1, .into = into};
  EXPECT_THAT(words_of(store->get({&get, 1})), HasSubstr("somebody has made a new one"));
  EXPECT_EQ(get.outcome, Outcome::kCorrupt);
  EXPECT_EQ(expect_blocks(*other, 1, 1), Outcome::kAbsent);
}

TEST_F(BigtableFaults, NothingIsWrittenIntoAStoreThatWasMadeAnew) {
  for (int which = 0; which < 4; ++which) {
    auto store = open();
    const auto page = make_blocks(1, 1, kBlock);
    const auto version = put_blocks(*store, 1, page).version;
    ASSERT_TRUE(store->add("n", 1));
    server().kill();
    ASSERT_TRUE(server().start_again());
    auto other = open();
    Put put{.block = 1, .from = page};
    if (which == 1) put.expected = version;
    const auto told = which < 2    ? store->put({&put, 1})
                      : which == 2 ? store->erase(1, 1)
                                   : store->add("n", 1).map([](auto) {});
    EXPECT_FALSE(told) << which;
    EXPECT_EQ(expect_blocks(*other, 1, 1), Outcome::kAbsent) << which;
    EXPECT_EQ(*other->add("n", 0), 0) << which;
  }
}

TEST_F(BigtableFaults, AServerInAnOlderStateIsSeenByItsEpoch) {
  auto store = open();
  CuttingProxy proxy(server().port());
  setenv("BIGTABLE_EMULATOR_HOST", fmt::format("127.0.0.1:{}", proxy.port()).c_str(), 1);
  auto through = open();
  set_cell("n/m", engines::bigtable::kEpoch, engines::bigtable::number_bytes(1));
  proxy.cut_after(0);
  Bytes into(kBlock);
  Get get{.block = 1, .into = into};
  EXPECT_THAT(words_of(through->get({&get, 1})), HasSubstr("went back to an older state"));
}

// What was sent before and while it was frozen may be carried out late, several times, and in any order.
TEST_F(BigtableFaults, AFrozenServerIsWaitedForAndWhatWasLateHidesNothing) {
  auto store = open("?timeout_ms=100");
  (void)put_blocks(*store, 1, make_blocks(1, 300, kBlock));
  Bytes into(kBlock);
  const auto seen = get_blocks(*store, 7, into);
  server().freeze();
  std::thread thaws([&] {
    std::this_thread::sleep_for(1s);
    server().thaw();
  });
  EXPECT_EQ(put_blocks(*store, 7, make_blocks(7, 1, kBlock, 1), seen.version).outcome, Outcome::kOk);
  EXPECT_EQ(put_blocks(*store, 100, make_blocks(100, 20, kBlock, 1)).outcome, Outcome::kOk);
  thaws.join();
  (void)put_blocks(*store, 110, make_blocks(110, 10, kBlock, 2));
  ASSERT_TRUE(store->erase(200, 50));
  std::this_thread::sleep_for(500ms);  // for whatever is late
  EXPECT_EQ(expect_blocks(*store, 7, 1, 1), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store, 100, 10, 1), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store, 110, 10, 2), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store, 249, 1), Outcome::kAbsent);
  EXPECT_EQ(expect_blocks(*store, 250, 51), Outcome::kOk);
}

// After a put that was unclear, an erased block keeps a cell that says so. Nobody may take it for a block.
TEST_F(BigtableFaults, ABlockErasedAfterAnUnclearPutIsAbsentInEveryWay) {
  CuttingProxy proxy(server().port());
  setenv("BIGTABLE_EMULATOR_HOST", fmt::format("127.0.0.1:{}", proxy.port()).c_str(), 1);
  auto store = open();
  proxy.cut_after(0);
  const auto put = put_blocks(*store, 1, make_blocks(1, 3, kBlock));
  EXPECT_EQ(put.outcome, Outcome::kOk);
  EXPECT_EQ(proxy.cuts(), 1);
  ASSERT_TRUE(store->erase(2, 1));
  EXPECT_EQ(expect_blocks(*store, 2, 1), Outcome::kAbsent);
  EXPECT_EQ(expect_blocks(*store, 1, 3), Outcome::kAbsent);
  EXPECT_EQ(store->usage()->blocks, 2u);
  const auto page = make_blocks(2, 1, kBlock, 5);
  const auto conflict = put_blocks(*store, 2, page, put.version + 1);
  EXPECT_EQ(conflict.outcome, Outcome::kConflict);
  EXPECT_EQ(conflict.version, 0u);
  EXPECT_EQ(put_blocks(*store, 2, page, 0).outcome, Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store, 2, 1, 5), Outcome::kOk);
  EXPECT_EQ(store->usage()->blocks, 3u);
  ASSERT_TRUE(store->erase(0, ~std::uint64_t{0}));
  EXPECT_EQ(store->usage()->blocks, 0u);
}

// Each call through a line that is cut after ever more bytes of the answer, so that every answer is lost at every
// place once.
TEST_F(BigtableFaults, LostAnswersAreResolvedByReadingBack) {
  CuttingProxy proxy(server().port());
  setenv("BIGTABLE_EMULATOR_HOST", fmt::format("127.0.0.1:{}", proxy.port()).c_str(), 1);
  auto store = open();
  Bytes page(kBlock);
  auto version = put_blocks(*store, 5, page).version;
  std::int64_t counted = 0;
  std::int64_t unclear = 0;
  std::uint64_t swaps = 0;
  for (std::int64_t bytes = 0; bytes < 160; bytes += 7) {
    const auto tint = static_cast<std::uint64_t>(bytes);
    proxy.cut_after(bytes);
    EXPECT_EQ(put_blocks(*store, 50, make_blocks(50, 4, kBlock, tint)).outcome, Outcome::kOk);
    EXPECT_EQ(expect_blocks(*store, 50, 4, tint), Outcome::kOk);

    proxy.cut_after(bytes);
    const auto swapped = put_blocks(*store, 5, make_blocks(5, 1, kBlock, ++swaps), version);
    ASSERT_EQ(swapped.outcome, Outcome::kOk) << "nobody else wrote it";
    EXPECT_EQ(put_blocks(*store, 5, page, version).outcome, Outcome::kConflict);
    EXPECT_EQ(expect_blocks(*store, 5, 1, swaps), Outcome::kOk);
    version = swapped.version;

    proxy.cut_after(bytes);
    const auto added = store->add("n", 1);
    if (added) {
      ++counted;
    } else {
      ASSERT_EQ(added.error().code, ErrorCode::kUnknown) << added.error().message();
      ++unclear;
    }
    const auto now = store->add("n", 0);
    ASSERT_TRUE(now) << now.error().message();
    EXPECT_GE(*now, counted);
    EXPECT_LE(*now, counted + unclear);

    proxy.cut_after(bytes);
    EXPECT_TRUE(store->erase(51, 1));
    EXPECT_EQ(expect_blocks(*store, 51, 1), Outcome::kAbsent);
  }
  EXPECT_GT(proxy.cuts(), 40);
}

TEST_F(BigtableFaults, AServerThatIsNotThereIsNamedWithItsPatience) {
  setenv("BIGTABLE_EMULATOR_HOST", fmt::format("127.0.0.1:{}", free_port()).c_str(), 1);
  const auto opened = open_here(engines::open_bigtable, "bigtable://p/i/t?patience_s=1");
  EXPECT_THAT(words_of(opened), HasSubstr("the server has not answered for 1 s"));
  EXPECT_THAT(words_of(opened), HasSubstr("bigtable://p/i/t"));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kUnavailable);
}

TEST_F(BigtableFaults, AServerThatDiesAndStaysAwayEndsTheCallNotWithAbsent) {
  auto store = open("?patience_s=1");
  (void)put_blocks(*store, 1, make_blocks(1, 1, kBlock));
  server().kill();
  Bytes into(kBlock);
  Get get{.block = 1, .into = into};
  EXPECT_THAT(words_of(store->get({&get, 1})), HasSubstr("the server has not answered for 1 s"));
  EXPECT_EQ(get.outcome, Outcome::kFailed);
  const auto page = make_blocks(1, 1, kBlock);
  Put put{.block = 1, .from = page};
  EXPECT_FALSE(store->put({&put, 1}));
  EXPECT_THAT(put.outcome, testing::AnyOf(Outcome::kFailed, Outcome::kUnknown));
}

TEST_F(BigtableFaults, ForeignRowsAreRefusedAndLeftAlone) {
  {
    auto other = open();
  }
  ASSERT_TRUE(ask_keeper(engines::kBigtableKeeper.remove, "bigtable://p/i/t/n"));
  set_cell("n/b/users", engines::bigtable::kPage, "theirs");
  const auto opened = open_here(engines::open_bigtable, "bigtable://p/i/t/n");
  EXPECT_THAT(words_of(opened), HasSubstr("rows that are not Farheap's, such as 'n/b/users'"));
  const auto rows = table()->read(engines::bigtable::row_of("n/b/users"));
  ASSERT_TRUE(rows && rows->size() == 1);
  EXPECT_EQ(rows->front().cells.front().value, "theirs");
}

TEST_F(BigtableFaults, AForeignCellInABlocksPlaceIsCorruptNotABlock) {
  auto store = open();
  (void)put_blocks(*store, 1, make_blocks(1, 2, kBlock));
  for (const std::string value : {"short", "of no length that a block has"}) {
    set_cell("n/b/0000000000000002", engines::bigtable::kPage, value);
    Bytes into(kBlock);
    Get get{.block = 2, .into = into};
    EXPECT_FALSE(store->get({&get, 1}));
    EXPECT_EQ(get.outcome, Outcome::kCorrupt);
  }
  EXPECT_EQ(expect_blocks(*store, 1, 1), Outcome::kOk);
}

TEST_F(BigtableFaults, NewerFormatsAndOtherBlocksAreRefused) {
  {
    auto store = open();
  }
  const auto other =
      open_here(engines::open_bigtable, "bigtable://p/i/t/n", {.block_bytes = 65536, .lifetime = Lifetime::kKeep});
  EXPECT_THAT(words_of(other), HasSubstr("it holds blocks of 4096 bytes, not of 65536"));
  set_cell("n/m", engines::bigtable::kAbout, "farheap 2 4096 0123456789abcdef");
  EXPECT_THAT(words_of(open_here(engines::open_bigtable, "bigtable://p/i/t/n")), HasSubstr("it has format 2"));
  set_cell("n/m", engines::bigtable::kAbout, "somebody's own");
  EXPECT_THAT(words_of(open_here(engines::open_bigtable, "bigtable://p/i/t/n")), HasSubstr("not one of Farheap's"));
}

TEST_F(BigtableFaults, MalformedPlacesAreRefusedWithTheRightForm) {
  for (const std::string place : {"", "//p", "//p/i", "//p//t", "//p/i/t/n/more", "//p/i/t/a b", "p/i/t"}) {
    const auto opened = open_here(engines::open_bigtable, "bigtable:" + place);
    ASSERT_FALSE(opened) << place;
    EXPECT_EQ(opened.error().code, ErrorCode::kInvalidArgument) << place;
    EXPECT_THAT(opened.error().message(), HasSubstr("bigtable://PROJECT/INSTANCE/TABLE")) << place;
  }
}

TEST_F(BigtableFaults, WhatAKilledProgramLeftIsCollectedAndWhatLivesIsNot) {
  auto alive = open("", Lifetime::kScratch);
  (void)put_blocks(*alive, 1, make_blocks(1, 1, kBlock));
  namespace bt = engines::bigtable;
  bt::api::MutateRowRequest beat;  // of an hour ago
  const auto hour_ago = bt::number_bytes(engines::VersionClock().now() - 3600ull * 1000 * 1000);
  bt::set_cell(*beat.mutable_mutations(), bt::kBeat, 1000, hour_ago);
  ASSERT_TRUE(table()->mutate("n/t/dead", beat).ok());
  set_cell("n/s/dead/b/0000000000000001", bt::kPage, "left");
  const auto listed = ask_keeper(engines::kBigtableKeeper.list, "bigtable://p/i/t");
  ASSERT_TRUE(listed);
  EXPECT_EQ(std::ranges::count(*listed, true, &StoreListing::in_use), 1);
  EXPECT_EQ(std::ranges::count(*listed, false, &StoreListing::in_use), 1);
  auto next = open("", Lifetime::kScratch);
  EXPECT_TRUE(table()->read(bt::row_of("n/s/dead/b/0000000000000001"))->empty());
  EXPECT_TRUE(table()->read(bt::row_of("n/t/dead"))->empty());
  EXPECT_EQ(expect_blocks(*alive, 1, 1), Outcome::kOk);
  alive.reset(), next.reset();
  EXPECT_TRUE(ask_keeper(engines::kBigtableKeeper.list, "bigtable://p/i/t")->empty());
}

TEST_F(BigtableFaults, KeptStoresAreSeenAndRemovedFromOutside) {
  EXPECT_FALSE(*ask_keeper(engines::kBigtableKeeper.is_there, "bigtable://p/i/t/n"));
  EXPECT_THAT(words_of(ask_keeper(engines::kBigtableKeeper.remove, "bigtable://p/i/t/n")), HasSubstr("there is none"));
  {
    auto store = open();
    (void)put_blocks(*store, 1, make_blocks(1, 1, kBlock));
    (void)store->add("n", 3);
  }
  EXPECT_TRUE(*ask_keeper(engines::kBigtableKeeper.is_there, "bigtable://p/i/t/n"));
  const auto listed = ask_keeper(engines::kBigtableKeeper.list, "bigtable://p/i/t");
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ(listed->front().uri, "bigtable://p/i/t/n");
  EXPECT_EQ(listed->front().block_bytes, kBlock);
  ASSERT_TRUE(ask_keeper(engines::kBigtableKeeper.remove, "bigtable://p/i/t/n"));
  EXPECT_FALSE(*ask_keeper(engines::kBigtableKeeper.is_there, "bigtable://p/i/t/n"));
  auto again = open();
  EXPECT_EQ(expect_blocks(*again, 1, 1), Outcome::kAbsent);
  EXPECT_EQ(*again->add("n", 0), 0);
}

}  // namespace
}  // namespace farheap::test
