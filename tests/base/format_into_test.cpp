// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/format_into.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace farheap::base {
namespace {

TEST(FormatInto, GivesTheTextAndTouchesNothingBehindIt) {
  std::array<char, 16> room;
  room.fill('#');
  EXPECT_EQ(format_into(room, "{} of {:x}", 7, 255), "7 of ff");
  EXPECT_EQ(room[7], '#');
}

TEST(FormatInto, CutsWhatHasNoRoom) {
  std::array<char, 8> room;
  room.fill('#');
  EXPECT_EQ(format_into({room.data(), 5}, "{}", std::string(1000, 'a')), "aaaaa");
  EXPECT_EQ(room[5], '#');
  EXPECT_EQ(format_into({room.data(), 5}, "{}", "12345"), "12345");
  EXPECT_EQ(format_into({room.data(), 0}, "{}", 1), "");
}

}  // namespace
}  // namespace farheap::base
