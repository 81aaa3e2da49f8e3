// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An engine over a server that dies, freezes, forgets, and answers through a line that is cut: the same for all.
#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/engines/server_faults.hpp"

namespace farheap::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

Get get_of(Bytes& into) { return {.block = 1, .into = into}; }

TEST_F(ServerFaults, AServerThatRestartsEmptyIsToldNotReadAsZeros) {
  auto store = open();
  (void)put_blocks(*store, 1, make_blocks(1, 3, kFaultBlock));
  restart_empty();
  Bytes into(kFaultBlock);
  Get get = get_of(into);
  EXPECT_THAT(words_of(store->get({&get, 1})), HasSubstr(engine().empty_words));
  EXPECT_EQ(get.outcome, Outcome::kCorrupt);
  const auto page = make_blocks(1, 1, kFaultBlock);
  Put put{.block = 1, .from = page};
  EXPECT_THAT(words_of(store->put({&put, 1})), HasSubstr(engine().empty_words));
  EXPECT_THAT(words_of(store->add("n", 1)), HasSubstr(engine().empty_words));
  EXPECT_THAT(words_of(store->sync()), HasSubstr(engine().empty_words));
  auto fresh = open();
  EXPECT_EQ(expect_blocks(*fresh, 1, 1), Outcome::kAbsent);
}

TEST_F(ServerFaults, AStoreThatWasMadeAnewBehindTheConnectionIsAnotherOne) {
  auto store = open();
  (void)put_blocks(*store, 1, make_blocks(1, 3, kFaultBlock));
  ASSERT_TRUE(ask_keeper(engine().keeper->remove, uri()));
  auto other = open();
  Bytes into(kFaultBlock);
  Get get = get_of(into);
  EXPECT_THAT(words_of(store->get({&get, 1})), HasSubstr("somebody has made a new one"));
  EXPECT_EQ(get.outcome, Outcome::kCorrupt);
  EXPECT_EQ(expect_blocks(*other, 1, 1), Outcome::kAbsent);
}

TEST_F(ServerFaults, NothingIsWrittenIntoAStoreThatWasMadeAnew) {
  const std::function<Status(Store&, const Bytes&, Version)> writes[] = {
      [](Store& store, const Bytes& page, Version) {
        Put put{.block = 1, .from = page};
        return store.put({&put, 1});
      },
      [](Store& store, const Bytes& page, Version version) {
        Put put{.block = 1, .from = page, .expected = version};
        return store.put({&put, 1});
      },
      [](Store& store, const Bytes&, Version) { return store.erase(1, 1); },
      [](Store& store, const Bytes&, Version) { return store.add("n", 1).map([](auto) {}); },
  };
  std::vector<std::unique_ptr<Store>> stores;
  const auto page = make_blocks(1, 1, kFaultBlock);
  Version version = 0;
  for (std::size_t i = 0; i < std::size(writes); ++i) {
    stores.push_back(open());
    version = put_blocks(*stores.back(), 1, page).version;
    ASSERT_TRUE(stores.back()->add("n", 1));
  }
  restart_empty();
  auto other = open();
  for (std::size_t i = 0; i < std::size(writes); ++i) {
    EXPECT_FALSE(writes[i](*stores[i], page, version)) << i;
    EXPECT_EQ(expect_blocks(*other, 1, 1), Outcome::kAbsent) << i;
    EXPECT_EQ(*other->add("n", 0), 0) << i;
  }
}

// What was sent before and while it was frozen may be carried out late, several times, and in any order.
TEST_F(ServerFaults, AFrozenServerIsWaitedForAndWhatWasLateHidesNothing) {
  go_through_a_freeze(1s, "?timeout_ms=" + std::to_string(engine().frozen_timeout_ms));
}

// With what a user has who sets nothing. In the full tier.
TEST_F(ServerFaults, FULL_AServerFrozenForHalfAMinuteIsWaitedFor) { go_through_a_freeze(30s, ""); }

// Each call through a line that is cut after ever more bytes of the answer, so that every answer is lost at every
// place once.
TEST_F(ServerFaults, LostAnswersAreResolvedAndNothingHappensTwice) {
  CuttingProxy proxy(server().port());
  use_port(proxy.port());
  auto store = open();
  Bytes page(kFaultBlock);
  auto version = put_blocks(*store, 5, page).version;
  std::int64_t counted = 0;
  std::uint64_t swaps = 0;
  for (std::int64_t bytes = 0; bytes < 600; bytes += bytes < 160 ? 9 : 40) {
    const auto tint = static_cast<std::uint64_t>(bytes);
    proxy.cut_after(bytes);
    EXPECT_EQ(put_blocks(*store, 50, make_blocks(50, 4, kFaultBlock, tint)).outcome, Outcome::kOk);
    proxy.cut_after(bytes);
    EXPECT_EQ(expect_blocks(*store, 50, 4, tint), Outcome::kOk);

    proxy.cut_after(bytes);
    const auto swapped = put_blocks(*store, 5, make_blocks(5, 1, kFaultBlock, ++swaps), version);
    ASSERT_EQ(swapped.outcome, Outcome::kOk) << "nobody else wrote it";
    EXPECT_EQ(put_blocks(*store, 5, page, version).outcome, Outcome::kConflict);
    EXPECT_EQ(expect_blocks(*store, 5, 1, swaps), Outcome::kOk);
    version = swapped.version;

    proxy.cut_after(bytes);
    const auto added = store->add("n", 1);
    ASSERT_TRUE(added) << added.error().message();
    EXPECT_EQ(*added, ++counted);

    proxy.cut_after(bytes);
    EXPECT_TRUE(store->erase(51, 1));
    EXPECT_EQ(expect_blocks(*store, 51, 1), Outcome::kAbsent);
  }
  EXPECT_GT(proxy.cuts(), 40);
}

TEST_F(ServerFaults, AServerThatIsNotThereIsNamedWithItsPatience) {
  use_port(free_port());
  const auto opened = try_to_open("?patience_s=1");
  EXPECT_THAT(words_of(opened), HasSubstr("the server has not answered for 1 s"));
  EXPECT_THAT(words_of(opened), HasSubstr(uri()));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kUnavailable);
}

TEST_F(ServerFaults, AServerThatDiesAndStaysAwayEndsTheCallNotWithAbsent) {
  auto store = open("?patience_s=1");
  (void)put_blocks(*store, 1, make_blocks(1, 1, kFaultBlock));
  server().kill();
  Bytes into(kFaultBlock);
  Get get = get_of(into);
  EXPECT_THAT(words_of(store->get({&get, 1})), HasSubstr("the server has not answered for 1 s"));
  EXPECT_EQ(get.outcome, Outcome::kFailed);
  const auto page = make_blocks(1, 1, kFaultBlock);
  Put put{.block = 1, .from = page};
  EXPECT_FALSE(store->put({&put, 1}));
  EXPECT_THAT(put.outcome, testing::AnyOf(Outcome::kFailed, Outcome::kUnknown));
}

TEST_F(ServerFaults, ForeignThingsAreRefusedAndLeftAlone) {
  {
    auto other = open();  // whatever holds stores is made
  }
  ASSERT_TRUE(ask_keeper(engine().keeper->remove, uri()));
  const auto words = engine().put_foreign();
  for (int twice = 0; twice < 2; ++twice) {
    const auto opened = try_to_open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::kConflict);
    EXPECT_THAT(words_of(opened), HasSubstr("below its name there is " + words + ", which is not Farheap's"));
  }
  auto scratch = open("", Lifetime::kScratch);  // has a place by chance
  EXPECT_EQ(put_blocks(*scratch, 1, make_blocks(1, 1, kFaultBlock)).outcome, Outcome::kOk);
}

TEST_F(ServerFaults, AForeignValueInABlocksPlaceIsCorruptNotABlock) {
  auto store = open();
  (void)put_blocks(*store, 1, make_blocks(1, 2, kFaultBlock));
  for (const std::size_t length :
       {std::size_t{5}, kFaultBlock - 1, kFaultBlock + 1}) {  // the last two look alike in base64
    engine().put_into_block_2(std::string(length, 'x'));
    Bytes into(kFaultBlock);
    Get get{.block = 2, .into = into};
    EXPECT_FALSE(store->get({&get, 1})) << length;
    EXPECT_EQ(get.outcome, Outcome::kCorrupt) << length;
  }
  EXPECT_EQ(expect_blocks(*store, 1, 1), Outcome::kOk);
}

TEST_F(ServerFaults, NewerFormatsAndOtherBlocksAreRefused) {
  {
    auto store = open();
  }
  EXPECT_THAT(words_of(try_to_open("", 65536)), HasSubstr("it holds blocks of 4096 bytes, not of 65536"));
  engine().put_about("farheap 2 4096 0123456789abcdef");
  EXPECT_THAT(words_of(try_to_open()), HasSubstr("it has format 2"));
}

TEST_F(ServerFaults, MalformedPlacesAreRefusedWithTheRightForm) {
  for (const auto& malformed : engine().malformed) {
    const auto opened = open_here(engine().open, engine().name + ":" + malformed);
    ASSERT_FALSE(opened) << malformed;
    EXPECT_EQ(opened.error().code, ErrorCode::kInvalidArgument) << malformed;
    EXPECT_THAT(opened.error().message(), HasSubstr(engine().form)) << malformed;
  }
}

TEST_F(ServerFaults, KeptStoresAreSeenAndRemovedFromOutside) {
  const auto& keeper = *engine().keeper;
  EXPECT_FALSE(*ask_keeper(keeper.is_there, uri()));
  EXPECT_THAT(words_of(ask_keeper(keeper.remove, uri())), HasSubstr("there is none"));
  {
    auto store = open();
    (void)put_blocks(*store, 1, make_blocks(1, 1, kFaultBlock));
    (void)store->add("n", 3);
  }
  EXPECT_TRUE(*ask_keeper(keeper.is_there, uri()));
  const auto listed = ask_keeper(keeper.list, place());
  ASSERT_TRUE(listed);
  const auto kept = std::ranges::find(*listed, uri(), &StoreListing::uri);
  ASSERT_NE(kept, listed->end());
  EXPECT_EQ(kept->block_bytes, kFaultBlock);
  EXPECT_EQ(kept->lifetime, Lifetime::kKeep);
  ASSERT_TRUE(ask_keeper(keeper.remove, uri()));
  EXPECT_FALSE(*ask_keeper(keeper.is_there, uri()));
  auto again = open();
  EXPECT_EQ(expect_blocks(*again, 1, 1), Outcome::kAbsent);
  EXPECT_EQ(*again->add("n", 0), 0);
}

// For those who copy it.
TEST_F(ServerFaults, AStoreTellsAllThatItHolds) {
  auto store = open();
  (void)put_blocks(*store, 3, make_blocks(3, 2, kFaultBlock));
  (void)put_blocks(*store, 10, make_blocks(10, 1, kFaultBlock));
  (void)put_blocks(*store, std::uint64_t{1} << 60, make_blocks(std::uint64_t{1} << 60, 1, kFaultBlock));
  ASSERT_TRUE(store->erase(10, 1));
  ASSERT_TRUE(store->add("a/b c%", -7));
  ASSERT_TRUE(store->add("n", 1));
  const auto runs_from = [&](std::uint64_t first) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
    const auto runs = store->runs_from(first);
    for (const auto& run : runs.value()) all.emplace_back(run.first, run.count);
    return all;
  };
  const std::pair<std::uint64_t, std::uint64_t> lease{std::uint64_t{1} << 60, 1};
  EXPECT_THAT(runs_from(0), testing::ElementsAre(std::pair(3, 2), lease));
  EXPECT_THAT(runs_from(4), testing::ElementsAre(std::pair(4, 1), lease));
  EXPECT_THAT(runs_from(lease.first + 1), testing::IsEmpty());
  std::vector<std::pair<std::string, std::int64_t>> counters;
  const auto told = store->counters();
  for (const auto& one : told.value()) counters.emplace_back(one.name, one.value);
  EXPECT_THAT(counters, testing::UnorderedElementsAre(std::pair("a/b c%", -7), std::pair("n", 1)));
}

}  // namespace
}  // namespace farheap::test
