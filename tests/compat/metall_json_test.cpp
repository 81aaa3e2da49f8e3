// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// metall::json in a datastore.
#include <gtest/gtest.h>

#include <metall/json/json.hpp>
#include <metall/metall.hpp>
#include <sstream>

#include "store_folder.hpp"

namespace farheap::testing {
namespace {

namespace mj = metall::json;
using metall::manager;
using Value = mj::value<manager::allocator_type<std::byte>>;

constexpr const char* kText =
    R"({"pi":3.25,"yes":true,"none":null,"list":[1,-2,18446744073709551615],"deep":{"text":"a text of more than twenty letters"}})";

void expect_all(const Value& value) {
  const auto& members = value.as_object();
  EXPECT_EQ(members.at("pi").as_double(), 3.25);
  EXPECT_TRUE(members.at("yes").as_bool());
  EXPECT_TRUE(members.at("none").is_null());
  EXPECT_EQ(members.at("list").as_array()[1], -2);
  EXPECT_EQ(members.at("list").as_array()[2].as_uint64(), UINT64_MAX);
  EXPECT_EQ(members.at("deep").as_object().at("text").as_string(), "a text of more than twenty letters");
  EXPECT_EQ(mj::serialize(value), mj::serialize(mj::parse(kText)));
}

TEST(MetallJsonTest, ValuesLiveInAStoreAndInItsCopyBesideIt) {
  StoreFolder folder;
  manager store(metall::create_only, folder / "store", kCapacity);
  auto* const value = store.construct<Value>("value")(mj::parse(kText, store.get_allocator()));
  expect_all(*value);
  ASSERT_TRUE(store.snapshot(folder / "copy"));
  manager copy(metall::open_only, folder / "copy");
  Value& there = *copy.find<Value>("value").first;
  expect_all(there);
  there.as_object()["list"].as_array().push_back(Value(copy.get_allocator()));
  EXPECT_NE(there, *value);
  EXPECT_EQ(there.as_object()["list"].as_array().size(), 4U);
}

TEST(MetallJsonTest, CopiesAndMovesGoIntoTheirOwnStore) {
  StoreFolder folder;
  {
    manager from(metall::create_only, folder / "from", kCapacity);
    manager to(metall::create_only, folder / "to", kCapacity);
    const Value source = mj::parse(kText, from.get_allocator());
    *to.construct<Value>("assigned")(to.get_allocator()) = source;
    *to.construct<Value>("moved")(to.get_allocator()) = mj::parse(kText, from.get_allocator());
    (void)to.construct<Value>("copied")(source, to.get_allocator());
    EXPECT_EQ(to.find<Value>("moved").first->get_allocator(), to.get_allocator());
  }
  ASSERT_TRUE(manager::remove(folder / "from"));
  manager to(metall::open_read_only, folder / "to");
  for (const char* const name : {"assigned", "moved", "copied"}) expect_all(*to.find<Value>(name).first);
}

TEST(MetallJsonTest, Numbers) {
  mj::value value;
  value = -3;
  EXPECT_TRUE(value.is_int64());
  EXPECT_EQ(value, -3);
  value = 7U;
  EXPECT_TRUE(value.is_uint64());
  EXPECT_EQ(value, 7) << "whatever the sign's type";
  EXPECT_NE(value, 7.0);
  EXPECT_NE(value, true);
  value = 'c';
  EXPECT_TRUE(value.is_int64()) << "letters are numbers";
  EXPECT_THROW((void)value.as_string(), std::bad_variant_access);
}

TEST(MetallJsonTest, MembersOfObjects) {
  mj::object object;
  object["b"] = "second";
  object["a"] = 1;
  EXPECT_EQ(object.begin()->key(), "b") << "in the order they came";
  EXPECT_EQ(object.find("none"), object.end());
  EXPECT_THROW((void)object.at("none"), std::out_of_range);
  mj::object same;
  same["a"] = 1;
  same["b"] = "second";
  EXPECT_EQ(object, same) << "whatever the order";
  EXPECT_EQ(object.erase("b")->key(), "a");
  EXPECT_EQ(object.erase("b"), object.end());
  EXPECT_NE(object, same);
}

TEST(MetallJsonTest, TextThatIsNoJsonIsNull) {
  metall::logger::set_log_level(metall::logger::level_filter::silent);
  EXPECT_TRUE(mj::parse("{").is_null());
  metall::logger::set_log_level(metall::logger::level_filter::error);
}

TEST(MetallJsonTest, PrintedForPeople) {
  std::ostringstream out;
  mj::pretty_print(out, mj::parse(R"({"a":[1,"b"],"c":{}})"));
  EXPECT_EQ(out.str(), "{\n  a : [\n    1,\n    b\n  ],\n  c : {\n\n  }\n}\n");
}

}  // namespace
}  // namespace farheap::testing
