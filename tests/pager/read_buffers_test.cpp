// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a reader's buffer keeps in memory: what one large read had touched stayed for ever, in each thread that reads,
// and was missing in the budget.
#include "pager/read_buffers.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "base/units.hpp"

namespace farheap::pager {
namespace {

constexpr std::uint32_t kBufferPages = 512;

class ReadBuffersTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(buffers_.make(3, kBufferPages)); }
  void read(unsigned buffer, std::uint32_t pages) {
    std::memset(buffers_.at(buffer), 1, pages * base::kPageBytes);
    buffers_.used(buffer, pages);
  }
  [[nodiscard]] std::size_t pages_in_memory(unsigned buffer) const {
    unsigned char there[kBufferPages];
    EXPECT_EQ(mincore(buffers_.at(buffer), kBufferPages * base::kPageBytes, there), 0);
    std::size_t count = 0;
    for (const unsigned char page : there) count += page & 1;
    return count;
  }
  ReadBuffers buffers_;
};

TEST_F(ReadBuffersTest, WhatOneLargeReadNeededDidNotStayForEver) {
  read(1, kBufferPages);
  EXPECT_EQ(pages_in_memory(1), kBufferPages);
  for (int i = 0; i < 100; ++i) read(1, 1);
  EXPECT_EQ(pages_in_memory(1), ReadBuffers::kKeptPages);
}

TEST_F(ReadBuffersTest, ASweepKeepsItsBuffer) {
  for (int i = 0; i < 100; ++i) {
    read(1, kBufferPages);
    read(1, 1);
    EXPECT_EQ(pages_in_memory(1), kBufferPages);
  }
}

TEST_F(ReadBuffersTest, EachBufferIsItsOwn) {
  for (unsigned buffer = 0; buffer < 3; ++buffer) read(buffer, kBufferPages);
  buffers_.shrink(1);
  EXPECT_EQ(pages_in_memory(0), kBufferPages);
  EXPECT_EQ(pages_in_memory(1), ReadBuffers::kKeptPages);
  EXPECT_EQ(pages_in_memory(2), kBufferPages);
  EXPECT_EQ(buffers_.at(2) - buffers_.at(1), static_cast<std::ptrdiff_t>(kBufferPages * base::kPageBytes));
}

}  // namespace
}  // namespace farheap::pager
