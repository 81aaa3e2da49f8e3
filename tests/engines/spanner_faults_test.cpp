// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// spanner: over an emulator that dies, freezes, and answers through a line that is cut.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "engines/spanner/space.hpp"
#include "tests/engines/cutting_proxy.hpp"
#include "tests/engines/engine_fixture.hpp"
#include "tests/store/servers.hpp"

namespace farheap::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
namespace sp = engines::spanner;

constexpr std::size_t kBlock = 4096;
constexpr char kUri[] = "spanner://project/instance/database/n";

class SpannerFaults : public testing::Test {
 protected:
  void SetUp() override {
    auto servers = start_spanner();
    if (!servers) GTEST_SKIP() << "NOT TESTED: " << servers.error().message();
    servers_ = std::move(*servers);
    servers_.set_environment();
  }
  TestServer& server() { return *servers_.members.front(); }
  static std::unique_ptr<Store> open(const std::string& parameters = "", Lifetime lifetime = Lifetime::kKeep) {
    auto opened = open_here(engines::open_spanner, kUri + parameters, {.lifetime = lifetime});
    if (!opened) throw std::runtime_error(opened.error().message());
    return std::move(*opened);
  }
  // The database itself, for what a store does not do.
  static std::unique_ptr<sp::Client> database() {
    const auto parsed = store::parse_uri(kUri, store::vocabulary());
    return std::move(*sp::Client::open(parsed->place, store::Parameters(*parsed, "spanner")));
  }
  static void change_about(const std::function<void(sp::About&)>& change, const std::string& name = "n") {
    const auto client = database();
    sp::About about{.name = name, .format = 1, .block_bytes = kBlock, .identity = "0123456789abcdef"};
    const auto found = sp::stores_of(*client, name, false);
    ASSERT_TRUE(found);
    if (!found->empty()) about = found->front();
    change(about);
    ASSERT_TRUE(client
                    ->transact([&](sp::Transaction& transaction) {
                      transaction.mutations.Clear();
                      sp::write_about(transaction, about);
                      return grpc::Status();
                    })
                    .ok());
  }

  TestServers servers_;
};

TEST_F(SpannerFaults, AServerThatRestartsEmptyIsToldNotReadAsZeros) {
  auto store = open();
  (void)put_blocks(*store, 1, make_blocks(1, 3, kBlock));
  server().kill();
  ASSERT_TRUE(server().start_again());
  Bytes into(kBlock);
  Get get{.block = 1, .into = into};
  EXPECT_THAT(words_of(store->get({&get, 1})), HasSubstr("the server lost the database"));
  EXPECT_EQ(get.outcome, Outcome::kCorrupt);
  const auto page = make_blocks(1, 1, kBlock);
  Put put{.block = 1, .from = page};
  EXPECT_THAT(words_of(store->put({&put, 1})), HasSubstr("lost"));
  EXPECT_THAT(words_of(store->add("n", 1)), HasSubstr("lost"));
  EXPECT_THAT(words_of(store->sync()), HasSubstr("lost"));
}

TEST_F(SpannerFaults, AStoreThatWasMadeAnewBehindTheConnectionIsAnotherOne) {
  auto store = open();
  (void)put_blocks(*store, 1, make_blocks(1, 3, kBlock));
  server().kill();
  ASSERT_TRUE(server().start_again());
  auto other = open();
  Bytes into(kBlock);
  Get get{.block = 1, .into = into};
  EXPECT_THAT(words_of(store->get({&get, 1})), HasSubstr("somebody has made a new one"));
  EXPECT_EQ(get.outcome, Outcome::kCorrupt);
  EXPECT_EQ(expect_blocks(*other, 1, 1), Outcome::kAbsent);
}

TEST_F(SpannerFaults, NothingIsWrittenIntoAStoreThatWasMadeAnew) {
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

TEST_F(SpannerFaults, AServerInAnOlderStateIsSeenByItsEpoch) {
  CuttingProxy proxy(server().port());
  setenv("SPANNER_EMULATOR_HOST", fmt::format("127.0.0.1:{}", proxy.port()).c_str(), 1);
  auto store = open();
  change_about([](sp::About& about) { about.epoch = 0; });
  proxy.cut_after(0);
  Bytes into(kBlock);
  Get get{.block = 1, .into = into};
  EXPECT_THAT(words_of(store->get({&get, 1})), HasSubstr("went back to an older state"));
}

TEST_F(SpannerFaults, AFrozenServerIsWaitedFor) {
  auto store = open("?timeout_ms=300");
  (void)put_blocks(*store, 1, make_blocks(1, 50, kBlock));
  Bytes into(kBlock);
  const auto seen = get_blocks(*store, 7, into);
  server().freeze();
  std::thread thaws([&] {
    std::this_thread::sleep_for(1s);
    server().thaw();
  });
  EXPECT_EQ(put_blocks(*store, 7, make_blocks(7, 1, kBlock, 1), seen.version).outcome, Outcome::kOk);
  thaws.join();
  (void)put_blocks(*store, 20, make_blocks(20, 5, kBlock, 2));
  ASSERT_TRUE(store->erase(40, 5));
  std::this_thread::sleep_for(500ms);  // for whatever is late
  EXPECT_EQ(expect_blocks(*store, 7, 1, 1), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store, 20, 5, 2), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store, 44, 1), Outcome::kAbsent);
  EXPECT_EQ(store->usage()->blocks, 45u);
}

// Each call through a line that is cut after ever more bytes of the answer. Unlike elsewhere, nothing stays unknown,
// counters included: a transaction is carried out once.
TEST_F(SpannerFaults, LostAnswersAreResolved) {
  CuttingProxy proxy(server().port());
  setenv("SPANNER_EMULATOR_HOST", fmt::format("127.0.0.1:{}", proxy.port()).c_str(), 1);
  auto store = open();
  auto version = put_blocks(*store, 5, make_blocks(5, 1, kBlock)).version;
  std::int64_t counted = 0;
  std::uint64_t swaps = 0;
  for (std::int64_t bytes = 0; bytes < 300; bytes += 13) {
    const auto tint = static_cast<std::uint64_t>(bytes);
    proxy.cut_after(bytes);
    EXPECT_EQ(put_blocks(*store, 50, make_blocks(50, 4, kBlock, tint)).outcome, Outcome::kOk);
    EXPECT_EQ(expect_blocks(*store, 50, 4, tint), Outcome::kOk);

    proxy.cut_after(bytes);
    const auto swapped = put_blocks(*store, 5, make_blocks(5, 1, kBlock, ++swaps), version);
    ASSERT_EQ(swapped.outcome, Outcome::kOk) << "nobody else wrote it";
    EXPECT_EQ(put_blocks(*store, 5, make_blocks(5, 1, kBlock), version).outcome, Outcome::kConflict);
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

TEST_F(SpannerFaults, AServerThatIsNotThereIsNamedWithItsPatience) {
  setenv("SPANNER_EMULATOR_HOST", fmt::format("127.0.0.1:{}", free_port()).c_str(), 1);
  const auto opened = open_here(engines::open_spanner, std::string(kUri) + "?patience_s=1");
  EXPECT_THAT(words_of(opened), HasSubstr("the server has not answered for 1 s"));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kUnavailable);
}

TEST_F(SpannerFaults, ForeignBlocksNewerFormatsAndOtherBlockSizesAreRefused) {
  {
    auto store = open();
  }
  const auto other = open_here(engines::open_spanner, kUri, {.block_bytes = 65536, .lifetime = Lifetime::kKeep});
  EXPECT_THAT(words_of(other), HasSubstr("it holds blocks of 4096 bytes, not of 65536"));
  change_about([](sp::About& about) { about.format = 2; });
  EXPECT_THAT(words_of(open_here(engines::open_spanner, kUri)), HasSubstr("it has format 2"));
  ASSERT_TRUE(ask_keeper(engines::kSpannerKeeper.remove, kUri));
  ASSERT_TRUE(database()
                  ->transact([](sp::Transaction& transaction) {
                    transaction.mutations.Clear();
                    auto& write = *transaction.mutations.Add()->mutable_insert_or_update();
                    write.set_table(sp::kBlocks);
                    for (const auto* column : {"Name", "Block", "Version", "Page"}) write.add_columns(column);
                    auto& row = *write.add_values();
                    sp::add(row, "n"), sp::add(row, std::int64_t{7}), sp::add(row, std::int64_t{1}),
                        sp::add(row, sp::base64("theirs"));
                    return grpc::Status();
                  })
                  .ok());
  EXPECT_THAT(words_of(open_here(engines::open_spanner, kUri)), HasSubstr("belong to no store"));
}

TEST_F(SpannerFaults, APageOfAnotherLengthIsCorruptNotABlock) {
  auto store = open();
  (void)put_blocks(*store, 1, make_blocks(1, 2, kBlock));
  for (const std::size_t length : {std::size_t{5}, kBlock - 1, kBlock + 1}) {  // the last two look alike in base64
    ASSERT_TRUE(database()
                    ->transact([&](sp::Transaction& transaction) {
                      transaction.mutations.Clear();
                      auto& write = *transaction.mutations.Add()->mutable_update();
                      write.set_table(sp::kBlocks);
                      for (const auto* column : {"Name", "Block", "Page"}) write.add_columns(column);
                      auto& row = *write.add_values();
                      sp::add(row, "n"), sp::add(row, sp::spanner_number(2)),
                          sp::add(row, sp::base64(std::string(length, 'x')));
                      return grpc::Status();
                    })
                    .ok());
    Bytes into(kBlock);
    Get get{.block = 2, .into = into};
    EXPECT_FALSE(store->get({&get, 1})) << length;
    EXPECT_EQ(get.outcome, Outcome::kCorrupt) << length;
  }
  EXPECT_EQ(expect_blocks(*store, 1, 1), Outcome::kOk);
}

TEST_F(SpannerFaults, StoresAreSeenFromOutsideAndWhatAKilledProgramLeftIsCollected) {
  EXPECT_FALSE(*ask_keeper(engines::kSpannerKeeper.is_there, kUri));
  EXPECT_THAT(words_of(ask_keeper(engines::kSpannerKeeper.remove, kUri)), HasSubstr("there is none"));
  auto alive = open("", Lifetime::kScratch);
  (void)put_blocks(*alive, 1, make_blocks(1, 1, kBlock));
  change_about([](sp::About& about) { about.beat = 1; }, "n/dead");
  {
    auto kept = open();
  }  // collects
  const auto listed = ask_keeper(engines::kSpannerKeeper.list, "spanner://project/instance/database");
  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->size(), 2u);
  EXPECT_EQ(std::ranges::count(*listed, Lifetime::kScratch, &StoreListing::lifetime), 1);
  EXPECT_TRUE(*ask_keeper(engines::kSpannerKeeper.is_there, kUri));
  ASSERT_TRUE(ask_keeper(engines::kSpannerKeeper.remove, kUri));
  EXPECT_FALSE(*ask_keeper(engines::kSpannerKeeper.is_there, kUri));
  EXPECT_EQ(expect_blocks(*alive, 1, 1), Outcome::kOk);
  alive.reset();
  EXPECT_TRUE(ask_keeper(engines::kSpannerKeeper.list, "spanner://project/instance/database")->empty());
}

TEST(SpannerRows, Base64IsThereAndBack) {
  for (const std::size_t length : {0u, 1u, 2u, 3u, 512u, 4096u, 65536u}) {
    Bytes from = make_blocks(1, 1, 65536);
    from.resize(length);
    Bytes into(length + 8, std::byte{0xEE});
    EXPECT_TRUE(sp::from_base64(sp::base64(from), std::span(into).first(length))) << length;
    EXPECT_TRUE(std::equal(from.begin(), from.end(), into.begin())) << length;
    EXPECT_EQ(into[length], std::byte{0xEE}) << length;
    EXPECT_FALSE(sp::from_base64(sp::base64(from), std::span(into).first(length + 1))) << length;
  }
  Bytes into(3);
  EXPECT_FALSE(sp::from_base64("!!!!", into));
}

TEST(SpannerRows, ValuesInPieces) {
  std::vector<sp::Row> rows;
  sp::RowReader reader(2, [&](const sp::Row& row) { rows.push_back(row); });
  sp::api::PartialResultSet part;
  const auto take = [&](std::initializer_list<const char*> values, bool chunked) {
    part.Clear();
    for (const auto* value : values) part.add_values()->set_string_value(value);
    part.set_chunked_value(chunked);
    reader.take(part);
  };
  take({"1", "he"}, true);
  take({"l"}, true);
  take({"lo", "2"}, false);
  take({"world"}, false);
  EXPECT_EQ(rows, (std::vector<sp::Row>{{"1", "hello"}, {"2", "world"}}));
}

TEST(SpannerRows, BlockNumbersKeepTheirOrder) {
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{1} << 50, ~std::uint64_t{0}}) {
    EXPECT_EQ(sp::block_of(sp::spanner_number(number)), number);
  }
  EXPECT_LT(sp::spanner_number(5), sp::spanner_number(std::uint64_t{1} << 63));
}

}  // namespace
}  // namespace farheap::test
