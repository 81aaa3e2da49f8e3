// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// bigtable: what its server is for the faults of all engines, and those that only it has.
#include "engines/bigtable/client.hpp"
#include "engines/space/version_clock.hpp"
#include "tests/engines/server_faults.hpp"

namespace farheap::test {
namespace {

using testing::HasSubstr;
namespace bt = engines::bigtable;

constexpr std::size_t kBlock = kFaultBlock;
constexpr char kUri[] = "bigtable://p/i/t/n";

// The table itself, for what a store does not do.
std::unique_ptr<bt::Client> table() {
  const auto parsed = store::parse_uri(kUri, store::vocabulary());
  return std::move(*bt::Client::open(parsed->place, store::Parameters(*parsed, "bigtable"), {}));
}

void set_cell(const std::string& key, std::string_view column, const std::string& value,
              std::int64_t time = std::int64_t{4000000000000000000}) {
  bt::api::MutateRowRequest request;
  bt::set_cell(*request.mutable_mutations(), column, time, value);
  ASSERT_TRUE(table()->mutate(key, request).ok());
}

// Its beat is of an hour ago.
void leave_dead() {
  constexpr std::uint64_t kHour = 3600ull * 1000 * 1000;
  set_cell("n/t/dead", bt::kBeat, bt::number_bytes(engines::VersionClock().now() - kHour), 1000);
  set_cell("n/s/dead/b/0000000000000001", bt::kPage, "left");
}

// After a put that was unclear, an erased block keeps a cell that says so. Nobody may take it for a block.
TEST_F(ServerFaults, ABlockErasedAfterAnUnclearPutIsAbsentInEveryWay) {
  CuttingProxy proxy(server().port());
  use_port(proxy.port());
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

TEST_F(ServerFaults, ForeignRowsStayAsTheyAre) {
  {
    auto other = open();
  }
  ASSERT_TRUE(ask_keeper(engines::kBigtableKeeper.remove, kUri));
  set_cell("n/b/users", bt::kPage, "theirs");
  EXPECT_FALSE(try_to_open());
  const auto rows = table()->read(bt::row_of("n/b/users"));
  ASSERT_TRUE(rows && rows->size() == 1);
  EXPECT_EQ(rows->front().cells.front().value, "theirs");
}

TEST_F(ServerFaults, RowsOfKilledProgramsAreGoneWhenTheyWereCollected) {
  auto store = open();
  leave_dead();
  auto next = open();
  EXPECT_TRUE(table()->read(bt::row_of("n/s/dead/b/0000000000000001"))->empty());
  EXPECT_TRUE(table()->read(bt::row_of("n/t/dead"))->empty());
}

// A late request must not count: its cell is compared as a whole.
TEST_F(ServerFaults, ACounterRemembersWhoAddedToItLast) {
  auto one = open();
  auto two = open();
  for (std::int64_t i = 0; i < 50; ++i) {
    ASSERT_EQ(one->add("n", 1), 2 * i + 1);
    ASSERT_EQ(two->add("n", 1), 2 * i + 2);
  }
  const auto rows = table()->read(bt::row_of("n/c/n"));
  ASSERT_TRUE(rows && rows->size() == 1);
  EXPECT_EQ(rows->front().cells.size(), 1u) << "nothing older stays";
  EXPECT_EQ(rows->front().cells.front().value.size(), 8u + 30 * 8) << "its value, and 30 stamps";
}

TEST_F(ServerFaults, ACounterOfAnEarlierFarheapIsGoneOnWith) {
  auto store = open();
  set_cell("n/c/n", bt::kCount, bt::number_bytes(41), 1000);
  EXPECT_EQ(store->add("n", 0), 41);
  EXPECT_EQ(store->add("n", 1), 42);
}

TEST_F(ServerFaults, ACounterThatIsNotOneOfOursIsToldAndLeftAlone) {
  auto store = open();
  set_cell("n/c/n", bt::kCount, "theirs");
  EXPECT_THAT(words_of(store->add("n", 1)), HasSubstr("the counter's cell is not one of a counter"));
  EXPECT_EQ(table()->read(bt::row_of("n/c/n"))->front().cells.front().value, "theirs");
}

}  // namespace

const FaultyEngine& faulty_engine() {
  static const FaultyEngine engine{
      .name = "bigtable",
      .place = "//p/i/t",
      .form = "bigtable://PROJECT/INSTANCE/TABLE",
      .malformed = {"", "//p", "//p/i", "//p//t", "//p/i/t/n/more", "//p/i/t/a b", "p/i/t"},
      .variable = "BIGTABLE_EMULATOR_HOST",
      .open = engines::open_bigtable,
      .keeper = &engines::kBigtableKeeper,
      .start = start_bigtable,
      .put_foreign =
          [] {
            set_cell("n/b/users", bt::kPage, "theirs");
            return "the row 'n/b/users'";
          },
      .put_into_block_2 = [](const std::string& bytes) { set_cell("n/b/0000000000000002", bt::kPage, bytes); },
      .put_about = [](const std::string& text) { set_cell("n/m", bt::kAbout, text); },
      .go_back = [] { set_cell("n/m", bt::kEpoch, bt::number_bytes(1)); },
      .leave_dead = leave_dead,
  };
  return engine;
}

}  // namespace farheap::test
