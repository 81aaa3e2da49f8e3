// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// datastore: what its server is for the faults of all engines, and blocks that are larger than an entity.
#include <fmt/format.h>

#include "engines/datastore/registry.hpp"
#include "tests/engines/server_faults.hpp"

namespace farheap::test {
namespace {

using testing::HasSubstr;
namespace datastore = engines::datastore;

// The database itself, for what a store does not do.
std::unique_ptr<datastore::Client> database() {
  const auto parsed = store::parse_uri("datastore://project/n", store::vocabulary());
  return std::move(*datastore::Client::open(parsed->place, store::Parameters(*parsed, "datastore"), {}));
}

void put_entity(const char* kind, const std::string& name, const std::function<void(datastore::api::Entity&)>& fill) {
  datastore::api::Mutation mutation;
  const auto client = database();
  client->set_key(*mutation.mutable_upsert()->mutable_key(), kind, name);
  fill(*mutation.mutable_upsert());
  ASSERT_TRUE(client->mutate({mutation}).ok());
}

void put_text(const char* kind, const std::string& name, const char* property, const std::string& text) {
  put_entity(kind, name, [&](datastore::api::Entity& entity) { datastore::set_text(entity, property, text); });
}

TEST_F(ServerFaults, BlocksLargerThanAnEntityAreSplitAndWrittenWhole) {
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

TEST_F(ServerFaults, ForeignEntitiesStayAsTheyAre) {
  put_text(datastore::kBlockKind, "n/users", "x", "theirs");
  EXPECT_FALSE(try_to_open());
  EXPECT_EQ(datastore::text_in(**database()->find(datastore::kBlockKind, "n/users"), "x"), "theirs");
  put_text(datastore::kStoreKind, "n", datastore::kAbout, "somebody's own");
  EXPECT_THAT(words_of(try_to_open()), HasSubstr("not one of Farheap's"));
}

}  // namespace

const FaultyEngine& faulty_engine() {
  static const FaultyEngine engine{
      .name = "datastore",
      .place = "//project",
      .form = "datastore://PROJECT/NAME",
      .malformed = {"//", "//p/a/b", "//p/a b", "///name"},
      .variable = "DATASTORE_EMULATOR_HOST",
      .open = engines::open_datastore,
      .keeper = &engines::kDatastoreKeeper,
      .start = start_datastore,
      // The first requests of a Java program take seconds.
      .warm_up = [] { ASSERT_TRUE(open_here(engines::open_datastore, "datastore://project/warm?timeout_ms=30000")); },
      .put_foreign =
          [] {
            put_text(datastore::kBlockKind, "n/users", "x", "theirs");
            return "the entity FarheapBlock 'n/users'";
          },
      .put_into_block_2 =
          [](const std::string& bytes) {
            put_entity(datastore::kBlockKind, "n/0000000000000002", [&](datastore::api::Entity& entity) {
              datastore::set_blob(entity, "d", bytes);
              datastore::set_number(entity, datastore::kVersion, 1);
            });
          },
      .put_about = [](const std::string& text) { put_text(datastore::kStoreKind, "n", datastore::kAbout, text); },
      .leave_dead =
          [] {
            put_entity(datastore::kStoreKind, "n/s/dead", [](datastore::api::Entity& entity) {
              datastore::set_text(entity, datastore::kAbout, engines::about_text(engines::new_about(kFaultBlock)));
              datastore::set_number(entity, datastore::kBeat, 1);
            });
          },
      .frozen_timeout_ms = 300,
  };
  return engine;
}

}  // namespace farheap::test
