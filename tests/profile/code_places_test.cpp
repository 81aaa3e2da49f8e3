// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile/code_places.hpp"

#include <gtest/gtest.h>

namespace farheap::profile {
namespace {

constexpr char kMapsOfProcess[] =
    "10000-20000 r-xp 00001000 08:01 7 /bin/program\n"
    "30000-40000 r-xp 00000000 08:01 8 /lib/a library\n"
    "no such line\n"
    "50000-60000 r-xp 00000000 00:00 0 \n"
    "18000-19000 r-xp 00000000 08:01 9 /lib/later";

std::uint32_t number_of(const std::string& path) {
  return path == "/bin/program" ? 1 : path == "/lib/a library" ? 2 : path == "/lib/later" ? 3 : 99;
}

TEST(CodePlaces, AreFilesAndOffsetsInThem) {
  const CodePlaces code(kMapsOfProcess, number_of);
  EXPECT_EQ(code.at(0x10000), (CodePlace{1, 0x1000}));
  EXPECT_EQ(code.at(0x1ffff), (CodePlace{1, 0x10fff}));
  EXPECT_EQ(code.at(0x30020), (CodePlace{2, 0x20}));
  EXPECT_EQ(code.at(0x18010), (CodePlace{3, 0x10})) << "what was loaded later counts";
}

TEST(CodePlaces, ElsewhereThereIsTheAddressItself) {
  const CodePlaces code(kMapsOfProcess, number_of);
  for (const std::uint64_t address :
       {std::uint64_t{0}, std::uint64_t{0xffff}, std::uint64_t{0x20000}, std::uint64_t{0x50000}, ~std::uint64_t{0}}) {
    EXPECT_FALSE(code.knows(address));
    EXPECT_EQ(code.at(address), (CodePlace{0, address}));
  }
  EXPECT_TRUE(code.knows(0x10000));
  EXPECT_FALSE(CodePlaces{}.knows(0x10000));
  EXPECT_EQ(CodePlaces("", number_of).at(7), (CodePlace{0, 7}));
}

// Code in a file that is not numbered is known, but in no file.
TEST(CodePlaces, WhatIsNotNumberedIsInFileZero) {
  const CodePlaces code(kMapsOfProcess, [](const std::string&) { return 0u; });
  EXPECT_TRUE(code.knows(0x10010));
  EXPECT_EQ(code.at(0x10010).file, 0u);
}

}  // namespace
}  // namespace farheap::profile
