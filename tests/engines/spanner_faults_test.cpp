// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// spanner: what its server is for the faults of all engines, and how its rows are read.
#include <algorithm>

#include "engines/spanner/registry.hpp"
#include "tests/engines/server_faults.hpp"

namespace farheap::test {
namespace {

namespace sp = engines::spanner;

// The database itself, for what a store does not do.
std::unique_ptr<sp::Client> database() {
  const auto parsed = store::parse_uri("spanner://project/instance/database/n", store::vocabulary());
  return std::move(*sp::Client::open(parsed->place, store::Parameters(*parsed, "spanner"), {}));
}

void change_store(const std::string& name, const std::function<void(sp::StoreRow&)>& change) {
  const auto status = database()->transact([&](sp::Transaction& transaction) {
    transaction.mutations.Clear();
    const auto found = sp::read_store(transaction, name);
    if (!found) return found.error();
    auto row = found->value_or(sp::StoreRow{.name = name, .about = engines::new_about(kFaultBlock)});
    change(row);
    sp::write_store(transaction, row);
    return grpc::Status();
  });
  ASSERT_TRUE(status.ok()) << status.error_message();
}

void put_block(std::uint64_t block, const std::string& bytes) {
  const auto status = database()->transact([&](sp::Transaction& transaction) {
    transaction.mutations.Clear();
    auto& write = *transaction.mutations.Add()->mutable_insert_or_update();
    write.set_table(sp::kBlocks);
    for (const auto* column : {"Name", "Block", "Version", "Page"}) write.add_columns(column);
    auto& row = *write.add_values();
    sp::add(row, "n"), sp::add(row, sp::spanner_number(block)), sp::add(row, std::int64_t{1});
    sp::add(row, sp::base64(bytes));
    return grpc::Status();
  });
  ASSERT_TRUE(status.ok()) << status.error_message();
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

const FaultyEngine& faulty_engine() {
  static const FaultyEngine engine{
      .name = "spanner",
      .place = "//project/instance/database",
      .form = "spanner://PROJECT/INSTANCE/DATABASE",
      .malformed = {"", "//p", "//p/i", "//p//d", "//p/i/d/n/more", "//p/i/d/a b"},
      .variable = "SPANNER_EMULATOR_HOST",
      .open = engines::open_spanner,
      .keeper = &engines::kSpannerKeeper,
      .start = start_spanner,
      .put_foreign =
          [] {
            put_block(7, "theirs");
            return "block 7 of no store";
          },
      .put_into_block_2 = [](const std::string& bytes) { put_block(2, bytes); },
      .put_about =
          [](const std::string& text) {
            change_store("n", [&](sp::StoreRow& row) { row.about = engines::about_in(text).value(); });
          },
      .go_back = [] { change_store("n", [](sp::StoreRow& row) { row.epoch = 0; }); },
      .leave_dead = [] { change_store("n/dead", [](sp::StoreRow& row) { row.beat = 1; }); },
      .frozen_timeout_ms = 300,
  };
  return engine;
}

}  // namespace farheap::test
