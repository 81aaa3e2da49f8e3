// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// datastore: over an emulator that dies, freezes, and answers through a line that is cut; and blocks that are larger
// than an entity.
#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "engines/datastore/space.hpp"
#include "tests/engines/cutting_proxy.hpp"
#include "tests/engines/engine_fixture.hpp"
#include "tests/store/servers.hpp"

namespace farheap::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
namespace datastore = engines::datastore;

constexpr std::size_t kBlock = 4096;
constexpr char kUri[] = "datastore://project/faults";

class DatastoreFaults : public testing::Test {
 protected:
  void SetUp() override {
    auto servers = start_datastore();
    if (!servers) GTEST_SKIP() << "NOT TESTED: " << servers.error().message();
    servers_ = std::move(*servers);
    servers_.set_environment();
    // The first requests of a Java program take seconds.
    const auto warm = open_here(engines::open_datastore, "datastore://project/warm?timeout_ms=30000");
    ASSERT_TRUE(warm) << warm.error().message();
  }
  TestServer& server() { return *servers_.members.front(); }
  static std::unique_ptr<Store> open(const std::string& parameters = "",
                                     const StoreOptions& options = {.lifetime = Lifetime::kKeep}) {
    auto opened = open_here(engines::open_datastore, kUri + parameters, options);
    if (!opened) throw std::runtime_error(opened.error().message());
    return std::move(*opened);
  }
  // The database itself, for what a store does not do.
  static std::unique_ptr<datastore::Client> database() {
    const auto parsed = store::parse_uri(kUri, store::vocabulary());
    return std::move(*datastore::Client::open(parsed->place, store::Parameters(*parsed, "datastore")));
  }
  static void put_entity(const char* kind, const std::string& name, const char* property, const std::string& text) {
    datastore::api::Mutation mutation;
    database()->set_key(*mutation.mutable_upsert()->mutable_key(), kind, name);
    datastore::set_text(*mutation.mutable_upsert(), property, text);
    ASSERT_TRUE(database()->mutate({mutation}).ok());
  }
  TestServers servers_;
};

TEST_F(DatastoreFaults, BlocksLargerThanAnEntityAreSplitAndWrittenWhole) {
  for (const std::size_t size : {std::size_t{1} << 20, std::size_t{2} << 20}) {
    const StoreOptions large{.block_bytes = size, .lifetime = Lifetime::kKeep};
    const auto uri = fmt::format("datastore://project/large-{}", size);
    auto opened = open_here(engines::open_datastore, uri, large);
    ASSERT_TRUE(opened) << opened.error().message();
    Store& store = **opened;
    const auto first = put_blocks(store, 1, make_blocks(1, 2, size));
    EXPECT_EQ(first.outcome, Outcome::kOk);
    EXPECT_EQ(expect_blocks(store, 1, 2), Outcome::kOk);
    EXPECT_EQ(expect_blocks(store, 0, 1), Outcome::kAbsent);
    EXPECT_EQ(store.usage()->blocks, 2u);
    Bytes into(size);
    const auto seen = get_blocks(store, 2, into);
    EXPECT_EQ(get_blocks(store, 2, into, seen.version).outcome, Outcome::kSame);
    const auto swapped = put_blocks(store, 2, make_blocks(2, 1, size, 1), seen.version);
    EXPECT_EQ(swapped.outcome, Outcome::kOk);
    EXPECT_EQ(put_blocks(store, 2, make_blocks(2, 1, size, 2), seen.version).outcome, Outcome::kConflict);
    ASSERT_TRUE(store.erase(1, 1));
    EXPECT_EQ(expect_blocks(store, 1, 1), Outcome::kAbsent);
    EXPECT_EQ(expect_blocks(store, 2, 1, 1), Outcome::kOk);
  }
}

TEST_F(DatastoreFaults, AServerThatRestartsEmptyIsToldNotReadAsZeros) {
  auto store = open();
  (void)put_blocks(*store, 1, make_blocks(1, 3, kBlock));
  server().kill();
  ASSERT_TRUE(server().start_again());
  Bytes into(kBlock);
  Get get{.block = 1, .into = into};
  EXPECT_THAT(words_of(store->get({&get, 1})), HasSubstr("Datastore lost it"));
  EXPECT_EQ(get.outcome, Outcome::kCorrupt);
  const auto page = make_blocks(1, 1, kBlock);
  Put put{.block = 1, .from = page};
  EXPECT_THAT(words_of(store->put({&put, 1})), HasSubstr("Datastore lost it"));
  EXPECT_THAT(words_of(store->add("n", 1)), HasSubstr("Datastore lost it"));
  auto fresh = open();
  EXPECT_EQ(expect_blocks(*fresh, 1, 1), Outcome::kAbsent);
}

TEST_F(DatastoreFaults, AStoreThatWasMadeAnewIsAnotherOne) {
  auto store = open();
  (void)put_blocks(*store, 1, make_blocks(1, 3, kBlock));
  ASSERT_TRUE(ask_keeper(engines::kDatastoreKeeper.remove, kUri));
  auto other = open();
  Bytes into(kBlock);
  Get get{.block = 1, .into = into};
  EXPECT_THAT(words_of(store->get({&get, 1})), HasSubstr("somebody has made a new one"));
  EXPECT_EQ(get.outcome, Outcome::kCorrupt);
}

// What was sent while it was frozen may be carried out late: it must change nothing then.
TEST_F(DatastoreFaults, AFrozenServerIsWaitedForAndWhatWasLateHidesNothing) {
  auto store = open("?timeout_ms=300");
  Bytes page(kBlock);
  const auto first = put_blocks(*store, 7, page);
  server().freeze();
  std::thread thaws([&] {
    std::this_thread::sleep_for(1s);
    server().thaw();
  });
  EXPECT_EQ(put_blocks(*store, 7, make_blocks(7, 1, kBlock, 1), first.version).outcome, Outcome::kOk);
  EXPECT_EQ(put_blocks(*store, 100, make_blocks(100, 20, kBlock, 1)).outcome, Outcome::kOk);
  EXPECT_EQ(store->add("n", 1).value(), 1);
  thaws.join();
  (void)put_blocks(*store, 110, make_blocks(110, 10, kBlock, 2));
  ASSERT_TRUE(store->erase(100, 5));
  std::this_thread::sleep_for(500ms);  // for whatever is late
  EXPECT_EQ(expect_blocks(*store, 7, 1, 1), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store, 104, 1), Outcome::kAbsent);
  EXPECT_EQ(expect_blocks(*store, 105, 5, 1), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store, 110, 10, 2), Outcome::kOk);
  EXPECT_EQ(store->add("n", 0).value(), 1);
}

// Each call through a line that is cut after ever more bytes of the answers, so that every answer is lost once.
TEST_F(DatastoreFaults, LostAnswersAreResolvedAndNothingHappensTwice) {
  CuttingProxy proxy(server().port());
  setenv("DATASTORE_EMULATOR_HOST", fmt::format("127.0.0.1:{}", proxy.port()).c_str(), 1);
  auto store = open();
  Bytes page(kBlock);
  auto version = put_blocks(*store, 5, page).version;
  std::int64_t counted = 0;
  std::uint64_t swaps = 0;
  for (std::int64_t bytes = 0; bytes < 600; bytes += 40) {
    const auto tint = static_cast<std::uint64_t>(bytes);
    proxy.cut_after(bytes);
    EXPECT_EQ(put_blocks(*store, 50, make_blocks(50, 4, kBlock, tint)).outcome, Outcome::kOk);
    proxy.cut_after(bytes);
    EXPECT_EQ(expect_blocks(*store, 50, 4, tint), Outcome::kOk);
    proxy.cut_after(bytes);
    const auto swapped = put_blocks(*store, 5, make_blocks(5, 1, kBlock, ++swaps), version);
    ASSERT_EQ(swapped.outcome, Outcome::kOk) << "nobody else wrote it";
    EXPECT_EQ(put_blocks(*store, 5, page, version).outcome, Outcome::kConflict);
    EXPECT_EQ(expect_blocks(*store, 5, 1, swaps), Outcome::kOk);
    version = swapped.version;
    proxy.cut_after(bytes);
    EXPECT_EQ(store->add("n", 1).value(), ++counted);
    proxy.cut_after(bytes);
    EXPECT_TRUE(store->erase(51, 1));
    EXPECT_EQ(expect_blocks(*store, 51, 1), Outcome::kAbsent);
  }
  EXPECT_GT(proxy.cuts(), 30);
}

TEST_F(DatastoreFaults, ForeignAndNewerEntitiesAreRefusedAndLeftAlone) {
  put_entity(datastore::kBlockKind, "faults/users", "x", "theirs");
  EXPECT_THAT(words_of(open_here(engines::open_datastore, kUri)),
              HasSubstr("entities of others below its name: FarheapBlock 'faults/users'"));
  EXPECT_EQ(datastore::text_in(**database()->find(datastore::kBlockKind, "faults/users"), "x"), "theirs");
  put_entity(datastore::kStoreKind, "faults", datastore::kAbout, "farheap 2 4096 0123456789abcdef");
  EXPECT_THAT(words_of(open_here(engines::open_datastore, kUri)), HasSubstr("it has format 2"));
  put_entity(datastore::kStoreKind, "faults", datastore::kAbout, "somebody's own");
  EXPECT_THAT(words_of(open_here(engines::open_datastore, kUri)), HasSubstr("not one of Farheap's"));
}

TEST_F(DatastoreFaults, AForeignValueInABlocksPlaceIsCorruptNotABlock) {
  auto store = open();
  (void)put_blocks(*store, 1, make_blocks(1, 2, kBlock));
  put_entity(datastore::kBlockKind, "faults/0000000000000002", "d", "theirs");
  Bytes into(kBlock);
  Get get{.block = 2, .into = into};
  EXPECT_FALSE(store->get({&get, 1}));
  EXPECT_EQ(get.outcome, Outcome::kCorrupt);
  EXPECT_EQ(expect_blocks(*store, 1, 1), Outcome::kOk);
}

TEST_F(DatastoreFaults, KeptAndScratchStoresAreListedAndGone) {
  {
    auto kept = open();
    auto scratch = open("", {});
    (void)put_blocks(*scratch, 1, make_blocks(1, 3, kBlock));
    const auto listed = ask_keeper(engines::kDatastoreKeeper.list, kUri);
    ASSERT_TRUE(listed) << listed.error().message();
    ASSERT_EQ(listed->size(), 2u);
    EXPECT_EQ((*listed)[0].uri, kUri);
    EXPECT_EQ((*listed)[0].lifetime, Lifetime::kKeep);
    EXPECT_TRUE((*listed)[1].in_use);
  }
  const auto all = ask_keeper(engines::kDatastoreKeeper.list, "datastore://project");
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 2u) << "this one and the one that warmed up";
  ASSERT_TRUE(ask_keeper(engines::kDatastoreKeeper.remove, kUri));
  const auto again = ask_keeper(engines::kDatastoreKeeper.remove, kUri);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kNotFound);
}

TEST(Datastore, AServerThatIsNotThereIsNamedWithItsPatience) {
  setenv("DATASTORE_EMULATOR_HOST", fmt::format("127.0.0.1:{}", free_port()).c_str(), 1);
  const auto opened = open_here(engines::open_datastore, "datastore://project?patience_s=1");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(words_of(opened), HasSubstr("the server has not answered for 1 s"));
}

TEST(Datastore, MalformedPlacesAreRefusedWithTheRightForm) {
  for (const std::string place : {"//", "//p/a/b", "//p/a b", "///name"}) {
    const auto opened = open_here(engines::open_datastore, "datastore:" + place);
    ASSERT_FALSE(opened) << place;
    EXPECT_EQ(opened.error().code, ErrorCode::kInvalidArgument) << place;
    EXPECT_THAT(opened.error().message(), HasSubstr("datastore://PROJECT/NAME")) << place;
  }
}

}  // namespace
}  // namespace farheap::test
