// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// JSON values in a heap: read, asked, changed, printed, and there again.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <farheap/json.hpp>
#include <limits>
#include <random>

#include "heap_folder.hpp"

namespace farheap::json {
namespace {

using namespace farheap::testing;

constexpr std::string_view kText = R"({
  "name": "Köln – \u00e9\ud83d\ude00 \"quoted\" \\ \n",
  "numbers": [0, -1, 9223372036854775807, -9223372036854775808, 18446744073709551615, 0.1, -2.5e300, 1.0],
  "nested": {"a/b": {"~": [true, false, null, {}, []]}},
  "": "empty key",
  "twice": 1, "twice": [2]
})";

template <class Value>
class JsonTest : public ::testing::Test {
 protected:
  HeapFolder folder;
};
using Values = ::testing::Types<value, offset_value>;
TYPED_TEST_SUITE(JsonTest, Values);

template <class Value>
Value must_parse(const Heap& heap, std::string_view text) {
  auto parsed = parse(text, typename Value::allocator_type(heap.allocator<std::byte>()));
  if (!parsed) {
    ADD_FAILURE() << parsed.error().message();
    abort();
  }
  return std::move(*parsed);
}

TYPED_TEST(JsonTest, IsThereAgain) {
  std::string before;
  {
    Heap heap = must(Heap::create(this->folder.uri(), kSmall));
    auto& document = *heap.construct<TypeParam>("document")(heap.allocator<std::byte>());
    const Status status = parse_into(document, kText);
    ASSERT_TRUE(status) << status.error().message();
    EXPECT_TRUE(heap.owns(document.find("name")->as_text().data()));
    before = serialize(document).value();
    ASSERT_TRUE(heap.commit());
  }
  Heap heap = must(Heap::open(this->folder.uri(), kSmall));
  auto& document = *heap.find<TypeParam>("document");
  EXPECT_EQ(serialize(document).value(), before);
  EXPECT_EQ(document, must_parse<TypeParam>(heap, kText));
  EXPECT_EQ(document["name"].as_text(), "Köln – é😀 \"quoted\" \\ \n");
  EXPECT_EQ(document["twice"].size(), 1u);  // the last one stays
  document["new"]["deep"] = "text that is longer than a short string";
  document["numbers"].emplace_back(7);
  ASSERT_TRUE(heap.commit());
  EXPECT_TRUE(heap.destroy<TypeParam>("document"));
}

TYPED_TEST(JsonTest, EveryKindIsToldApart) {
  Heap heap = must(Heap::create(this->folder.uri(), kSmall));
  const auto document = must_parse<TypeParam>(heap, kText);
  const auto& numbers = *document.find("numbers");
  EXPECT_EQ(numbers[0].as_int64(), 0);
  EXPECT_EQ(numbers[2].as_int64(), INT64_MAX);
  EXPECT_EQ(numbers[3].as_int64(), INT64_MIN);
  EXPECT_EQ(numbers[4].as_uint64(), UINT64_MAX);
  EXPECT_EQ(numbers[5].as_double(), 0.1);
  EXPECT_EQ(numbers[7].kind(), Kind::kDouble);
  EXPECT_EQ(numbers[2].to_double(), 9223372036854775807.0);
  EXPECT_EQ(numbers[0].if_uint64(), nullptr);
  EXPECT_EQ(numbers.if_object(), nullptr);
  EXPECT_EQ(numbers.find(8), nullptr);
  EXPECT_EQ(numbers.find("key"), nullptr);
  EXPECT_EQ(document.find("missing"), nullptr);
  EXPECT_EQ(document.find("")->as_text(), "empty key");
  const auto& mixed = *document.find_path("/nested/a~1b/~0");
  EXPECT_TRUE(mixed[0].as_bool());
  EXPECT_FALSE(mixed[1].as_bool());
  EXPECT_TRUE(mixed[2].is_null());
  EXPECT_EQ(mixed[3].kind(), Kind::kObject);
  EXPECT_EQ(mixed[4].kind(), Kind::kArray);
}

TYPED_TEST(JsonTest, PathsLeadToPartsOrNowhere) {
  Heap heap = must(Heap::create(this->folder.uri(), kSmall));
  const auto document = must_parse<TypeParam>(heap, kText);
  EXPECT_EQ(document.find_path(""), &document);
  EXPECT_EQ(document.find_path("/")->as_text(), "empty key");
  EXPECT_EQ(document.find_path("/numbers/1")->as_int64(), -1);
  for (const char* const nowhere : {"numbers", "/numbers/8", "/numbers/01", "/numbers/-1", "/numbers/1x", "/numbers/",
                                    "/numbers/1/2", "/a~2b", "/~", "/nested/a/b", "/numbers/99999999999999999999"}) {
    EXPECT_EQ(document.find_path(nowhere), nullptr) << nowhere;
  }
}

TYPED_TEST(JsonTest, ValuesAreCopiedMovedAndCompared) {
  Heap heap = must(Heap::create(this->folder.uri(), kSmall));
  Heap other = must(Heap::create(this->folder.uri("other"), kSmall));
  auto document = must_parse<TypeParam>(heap, kText);
  const TypeParam copy = document;
  EXPECT_EQ(copy, document);
  TypeParam elsewhere(copy, other.allocator<std::byte>());
  EXPECT_EQ(elsewhere, document);
  EXPECT_TRUE(other.owns(elsewhere["name"].as_text().data()));
  elsewhere = std::move(document);  // copied: it stays in its heap
  EXPECT_TRUE(other.owns(elsewhere["name"].as_text().data()));
  elsewhere["numbers"][1] = -2;
  EXPECT_FALSE(elsewhere == copy);
  TypeParam part = copy;
  part = std::move(part["nested"]);  // a part takes the place of the whole
  EXPECT_EQ(part, *copy.find("nested"));
  part["a/b"] = part;  // and the whole that of a part
  EXPECT_EQ(*part.find_path("/a~1b"), *copy.find("nested"));
  part = nullptr;
  EXPECT_TRUE(part.is_null());
  part.emplace_back("one");
  part.emplace_back(2u);
  part.emplace_back(nullptr);
  part.emplace_back(false);
  part.emplace_back(copy);
  EXPECT_EQ(part.size(), 5u);
  EXPECT_EQ(part[4], copy);
  EXPECT_EQ(part[1], TypeParam(2, heap.allocator<std::byte>()));
  EXPECT_FALSE(TypeParam(2, heap.allocator<std::byte>()) == TypeParam(2.0, heap.allocator<std::byte>()));
  TypeParam object(heap.allocator<std::byte>());
  object["k"] = 1;
  EXPECT_TRUE(object.erase("k"));
  EXPECT_FALSE(object.erase("k"));
  EXPECT_EQ(object.size(), 0u);
}

TYPED_TEST(JsonTest, NothingIsLeftOfWhatIsDestroyedOrWrong) {
  Heap heap = must(Heap::create(this->folder.uri(), kSmall));
  {
    const auto warm = must_parse<TypeParam>(heap, kText);
  }
  const auto before = heap.statistics().allocated_bytes;
  for (std::size_t length = 0; length < kText.size(); ++length) {
    EXPECT_FALSE(parse(kText.substr(0, length), typename TypeParam::allocator_type(heap.allocator<std::byte>())));
  }
  {
    auto document = must_parse<TypeParam>(heap, kText);
    auto again = document;
    again = document;
    again["numbers"] = "text";
    document = std::move(again);
  }
  EXPECT_EQ(heap.statistics().allocated_bytes, before);
}

TEST(Json, MistakesAreToldWithTheirPlace) {
  HeapFolder folder;
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  value kept(5, heap.allocator<std::byte>());
  struct Case {
    std::string_view text, place, why;
  };
  using namespace std::string_view_literals;
  for (const Case& wrong : {Case{"", "line 1, column 1", "unexpected end of input"},
                            {"[1,\n  2,\n  ]", "line 3, column 3", "unexpected ']'"},
                            {"{\"a\" 1}", "line 1, column 6", "expected ':'"},
                            {"[1] 2", "line 1, column 5", "expected end of input"},
                            {"\"\xff\"", "line 1, column 2", "ill-formed UTF-8"},
                            {"\"\xed\xa0\x80\"", "line 1, column 3", "ill-formed UTF-8"},
                            {R"("\ud800")", "line 1, column 8", "surrogate"},
                            {"[01]", "line 1, column 3", "unexpected number"},
                            {"[1e400]", "line 1", "number overflow"},
                            {"NaN", "line 1, column 1", "invalid literal"},
                            {"1\0002"sv, "line 1, column 2", "zero byte"},
                            {"[[[1]], [\"[\"], [[[1]]]]", "line 1, column 18", "within each other"}}) {
    const Status status = parse_into(kept, wrong.text, {.depth = 3});
    ASSERT_FALSE(status) << wrong.text;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(status.error().subject.find(wrong.place), std::string::npos) << status.error().message();
    EXPECT_NE(status.error().why.find(wrong.why), std::string::npos) << status.error().message();
  }
  EXPECT_EQ(kept.as_int64(), 5);
  EXPECT_TRUE(parse_into(kept, "[[[1]], [[1]]]", {.depth = 3}));
  EXPECT_FALSE(parse_into(kept, std::string(1'000'000, '[')));
}

TEST(Json, NumbersComeBackExactly) {
  HeapFolder folder;
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  value list(heap.allocator<std::byte>());
  std::mt19937_64 random(4);
  std::vector<double> doubles{0.0, -0.0, 5e-324, std::numeric_limits<double>::max(), 1e22, 123456789012345678.0};
  while (doubles.size() < 20'000) {
    const auto number = std::bit_cast<double>(random());
    if (std::isfinite(number)) doubles.push_back(number);
  }
  for (const double number : doubles) list.emplace_back(number);
  const value again = parse(serialize(list).value(), heap.allocator<std::byte>()).value();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < doubles.size(); ++i) {
    const double* const number = again[i].if_double();
    wrong += number == nullptr || std::bit_cast<std::uint64_t>(*number) != std::bit_cast<std::uint64_t>(doubles[i]);
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(serialize(parse("18446744073709551616", heap.allocator<std::byte>()).value()).value(),
            "18446744073709551616.0");
}

TEST(Json, ValuesOutsideOfAHeapAndWrongKinds) {
  using Outside = basic_value<std::allocator<std::byte>>;
  const Outside document = parse(kText, std::allocator<std::byte>()).value();
  EXPECT_EQ(document.find("numbers")->size(), 8u);
  EXPECT_DEATH((void)document.as_int64(), "taken for a kind");
  HeapFolder folder;
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  EXPECT_EQ(document, must_parse<value>(heap, kText));
}

TEST(Json, WhatJsonCannotSayIsRefused) {
  HeapFolder folder;
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  value document(heap.allocator<std::byte>());
  document["a"] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(serialize(document).error().message().find("not a number"), std::string::npos);
  document["a"] = -std::numeric_limits<double>::infinity();
  EXPECT_FALSE(serialize(document));
  document["a"] = "\xc3(";
  EXPECT_NE(serialize(document).error().message().find("not UTF-8"), std::string::npos);
  document["a"] = 1;
  document["\xff"] = 1;
  EXPECT_FALSE(serialize(document));
}

TEST(Json, PrettyPrinting) {
  HeapFolder folder;
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  const value document = must_parse<value>(heap, R"({"b":[1,{"x":"\u0001\"ü"},[]],"a":{}})");
  EXPECT_EQ(serialize(document).value(), R"({"a":{},"b":[1,{"x":"\u0001\"ü"},[]]})");
  EXPECT_EQ(serialize(document, {.indent = 2}).value(), R"({
  "a": {},
  "b": [
    1,
    {
      "x": "\u0001\"ü"
    },
    []
  ]
})");
}

std::string list_of_texts(int count) {
  std::string text = "[null";
  for (int i = 0; i < count; ++i) text += ",\"" + std::string(8000, 'x') + '"';
  return text + ']';
}

TEST(Json, AFullHeapIsToldAndNothingIsLeft) {
  HeapFolder folder;
  Heap heap = must(Heap::create(folder.uri(), {.memory = 32_MiB, .capacity = 256_MiB}));
  std::vector<void*> taken;
  while (void* const memory = heap.allocate(16_MiB)) taken.push_back(memory);
  ASSERT_FALSE(taken.empty());
  heap.deallocate(taken.back());
  value kept("kept", heap.allocator<std::byte>());
  const Status status = parse_into(kept, list_of_texts(6000));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kNoSpace);
  EXPECT_EQ(kept.as_text(), "kept");
  EXPECT_TRUE(parse_into(kept, list_of_texts(1000)));
  EXPECT_EQ(kept.size(), 1001u);
}

}  // namespace
}  // namespace farheap::json
