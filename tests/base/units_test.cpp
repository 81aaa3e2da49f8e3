// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/units.hpp"

#include <gtest/gtest.h>

namespace farheap::base {
namespace {

TEST(ParseSize, ReadsWhatPeopleWrite) {
  const std::pair<const char*, std::uint64_t> cases[] = {
      {"0", 0},
      {"4096", 4096},
      {"4096B", 4096},
      {"64K", 64 * kKiB},
      {"64KiB", 64 * kKiB},
      {"512M", 512 * kMiB},
      {"512m", 512 * kMiB},
      {"1.5G", 3 * kGiB / 2},
      {"2T", 2 * kTiB},
      {"1MB", kMiB},
  };
  for (const auto& [text, bytes] : cases) {
    const auto size = parse_size(text);
    ASSERT_TRUE(size) << text;
    EXPECT_EQ(*size, bytes) << text;
  }
}

TEST(ParseSize, RefusesTheRestAndShowsTheForm) {
  for (const char* text : {"", "M", "-1", "12Q", "1 M", "1MM", "1Mi", "1e3", "0x10", "nan", "inf", "99999999T"}) {
    const auto size = parse_size(text);
    ASSERT_FALSE(size) << text << " was read as " << *size;
    EXPECT_EQ(size.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(size.error().remedy.find("512M"), std::string::npos);
  }
}

TEST(FormatSize, KeepsSmallOnesExact) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(1023), "1023 B");
  EXPECT_EQ(format_size(512 * kMiB), "512.0 MiB");
  EXPECT_EQ(format_size(5000 * kTiB), "5000.0 TiB");
}

TEST(RoundUp, ToPages) {
  EXPECT_EQ(pages_for(0), 0U);
  EXPECT_EQ(pages_for(1), 1U);
  EXPECT_EQ(pages_for(kPageBytes), 1U);
  EXPECT_EQ(pages_for(kPageBytes + 1), 2U);
}

}  // namespace
}  // namespace farheap::base
