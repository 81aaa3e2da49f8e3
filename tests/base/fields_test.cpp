// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/fields.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace farheap::base {
namespace {

std::string bytes_of(std::uint64_t number) {
  FieldWriter out;
  out.number(number);
  return out.bytes();
}

TEST(Fields, ANumberIsEightBytesTheLowestFirst) {
  EXPECT_EQ(bytes_of(0x0807060504030201u), std::string("\1\2\3\4\5\6\7\10", 8));
}

TEST(Fields, ATextIsItsLengthAndItsBytes) {
  FieldWriter out;
  out.text(std::string_view("a\0b", 3));
  EXPECT_EQ(out.bytes(), bytes_of(3) + std::string("a\0b", 3));
}

TEST(Fields, OfNothingAreWhole) {
  FieldReader in("");
  EXPECT_TRUE(in.is_empty());
  EXPECT_TRUE(in.is_good());
  EXPECT_TRUE(in.is_whole());
}

// Numbers and texts in an order that a random number tells.
struct Field {
  bool is_text = false;
  std::uint64_t number = 0;
  std::string text;
};

std::vector<Field> random_fields(std::mt19937_64& random) {
  std::vector<Field> fields(random() % 12);
  for (Field& field : fields) {
    field.is_text = random() % 2 != 0;
    field.number = random() >> random() % 64;
    for (auto left = random() % 20; left != 0; --left) field.text.push_back(static_cast<char>(random()));
  }
  return fields;
}

std::string encode(const std::vector<Field>& fields) {
  FieldWriter out;
  for (const Field& field : fields) field.is_text ? out.text(field.text) : out.number(field.number);
  return out.bytes();
}

TEST(Fields, ComeBackAsTheyWereWritten) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    const auto fields = random_fields(random);
    const std::string bytes = encode(fields);
    FieldReader in(bytes);
    for (const Field& field : fields) {
      EXPECT_FALSE(in.is_empty());
      if (field.is_text) {
        EXPECT_EQ(in.text(), field.text);
      } else {
        EXPECT_EQ(in.number(), field.number);
      }
      EXPECT_TRUE(in.is_good());
    }
    EXPECT_TRUE(in.is_empty());
    EXPECT_TRUE(in.is_whole());
  }
}

// Cut at every byte: what was whole before the cut is right, what follows is 0 or empty, and the reader says so.
TEST(Fields, ThatAreCutAreRightUpToTheCutAndNothingBehindIt) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 30; ++round) {
    const auto fields = random_fields(random);
    const std::string bytes = encode(fields);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      FieldReader in(std::string_view(bytes).substr(0, length));
      std::size_t end = 0;  // of the field, in the whole
      for (const Field& field : fields) {
        end += field.is_text ? 8 + field.text.size() : 8;
        if (field.is_text) {
          EXPECT_EQ(in.text(), end <= length ? field.text : "");
        } else {
          EXPECT_EQ(in.number(), end <= length ? field.number : 0);
        }
        EXPECT_EQ(in.is_good(), end <= length) << length;
        if (end > length) {
          EXPECT_EQ(in.left(), 0u);
        }
      }
      EXPECT_FALSE(in.is_whole());
    }
  }
}

TEST(Fields, ALengthBeyondTheEndIsNoText) {
  for (const std::uint64_t length :
       {std::uint64_t{4}, std::uint64_t{1} << 32, std::uint64_t{1} << 63, ~std::uint64_t{0}, ~std::uint64_t{7}}) {
    const std::string bytes = bytes_of(length) + "abc";
    FieldReader in(bytes);
    EXPECT_EQ(in.text(), "") << length;
    EXPECT_FALSE(in.is_good()) << length;
    EXPECT_EQ(in.left(), 0u) << length;
    EXPECT_EQ(in.number(), 0u) << length;
    EXPECT_FALSE(in.is_whole()) << length;
  }
}

TEST(Fields, AfterWhatIsNotThereNothingIsGoodAgain) {
  const std::string bytes = bytes_of(100) + bytes_of(7) + bytes_of(8);
  FieldReader in(bytes);
  EXPECT_EQ(in.text(), "");
  EXPECT_EQ(in.number(), 0u) << "what lay behind the length is passed by";
  EXPECT_EQ(in.text(), "");
  EXPECT_FALSE(in.is_good());
}

TEST(Fields, WithBytesLeftOverAreGoodButNotWhole) {
  const std::string bytes = bytes_of(1) + "x";
  FieldReader in(bytes);
  EXPECT_EQ(in.number(), 1u);
  EXPECT_EQ(in.left(), 1u);
  EXPECT_TRUE(in.is_good());
  EXPECT_FALSE(in.is_whole());
}

}  // namespace
}  // namespace farheap::base
