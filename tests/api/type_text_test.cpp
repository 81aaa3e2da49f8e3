// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/type_text.hpp"

#include <gtest/gtest.h>

#include <array>
#include <farheap/containers/std.hpp>
#include <farheap/farheap.hpp>
#include <farheap/json.hpp>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

namespace farheap::testing {
namespace {

namespace inner {
struct Node {};
template <class T, class More = std::less<T>>
struct Tree {};
}  // namespace inner

template <class T>
std::string short_name() {
  return api::short_type(typeid(T).name());
}

TEST(TypeTextTest, WhatEverybodyKnowsIsLeftOut) {
  EXPECT_EQ(short_name<int>(), "int");
  EXPECT_EQ(short_name<std::string>(), "std::string");
  EXPECT_EQ((short_name<std::map<std::string, std::vector<int>>>()), "std::map<std::string, std::vector<int>>");
  EXPECT_EQ((short_name<std::unordered_map<int, std::string>>()), "std::unordered_map<int, std::string>");
  EXPECT_EQ(short_name<std::unique_ptr<int>>(), "std::unique_ptr<int>");
  EXPECT_EQ(short_name<std::string_view>(), "std::string_view");
  EXPECT_EQ(short_name<farheap::string>(), "farheap::string");
  EXPECT_EQ((short_name<farheap::map<farheap::string, farheap::vector<int>>>()),
            "farheap::map<farheap::string, farheap::vector<int>>");
  EXPECT_EQ((short_name<farheap::unordered_map<farheap::string, farheap::set<long>>>()),
            "farheap::unordered_map<farheap::string, farheap::set<long>>");
  EXPECT_EQ(short_name<json::value>(), "farheap::json::value");
  EXPECT_EQ((short_name<farheap::vector<std::pair<int, farheap::string>>>()),
            "farheap::vector<std::pair<int, farheap::string>>");
}

TEST(TypeTextTest, WhatTellsTypesApartStays) {
  EXPECT_EQ((short_name<std::map<int, int, std::greater<int>>>()),
            "std::map<int, int, std::greater<int>, std::allocator<std::pair<int const, int>>>");
  EXPECT_EQ((short_name<std::vector<int, allocator<int>>>()), "std::vector<int, farheap::allocator<int>>");
  EXPECT_EQ((short_name<std::array<int, 3>>()), "std::array<int, 3ul>");
  EXPECT_EQ((short_name<inner::Tree<int, std::greater<int>>>()),
            "farheap::testing::(anonymous namespace)::inner::Tree<int, std::greater<int>>");
  EXPECT_EQ(short_name<void (*)(std::string, int)>(), "void (*)(std::string, int)");
  EXPECT_EQ((short_name<std::pair<const char*, const int>>()), "std::pair<char const*, int const>");
}

TEST(TypeTextTest, WhatIsNoTypeStaysAsItIs) {
  for (const char* text : {"", "x<", "x>", "x<y", "a, b", "operator<", "(((", "not a type"}) {
    EXPECT_EQ(api::short_type(text), text);
  }
}

// A program without RTTI names its types by what the compiler prints.
template <class T>
void expect_same() {
  const std::string printed = "=" + std::string(detail::printed_name<T>());
  EXPECT_TRUE(api::is_same_type(typeid(T).name(), printed)) << typeid(T).name() << "\n" << printed;
  EXPECT_TRUE(api::is_same_type(printed, typeid(T).name()));
  EXPECT_FALSE(api::is_same_type(printed, typeid(short).name()));
}
TEST(TypeTextTest, TypesAreTheSameWithoutRtti) {
  expect_same<int>();
  expect_same<unsigned long>();
  expect_same<long long>();
  expect_same<inner::Node>();
  expect_same<std::string>();
  expect_same<std::map<std::string, std::vector<int>>>();
  expect_same<farheap::map<farheap::string, farheap::vector<int>>>();
  expect_same<farheap::unordered_map<farheap::string, farheap::vector<unsigned long>>>();
  expect_same<std::array<inner::Node, 3>>();
  expect_same<std::pair<const char*, const int>>();
  expect_same<json::value>();
  EXPECT_FALSE(api::is_same_type(typeid(std::vector<int>).name(), typeid(farheap::vector<int>).name()));
}

}  // namespace
}  // namespace farheap::testing
