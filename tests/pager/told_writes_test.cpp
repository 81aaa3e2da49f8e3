// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/told_writes.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace farheap::pager {
namespace {

constexpr std::uint64_t kCapacity = 1 << 16;

std::vector<PageNumber> taken(ToldWrites& told, PageNumber end = kCapacity) {
  std::vector<PageNumber> pages;
  told.take(end, [&](PageNumber page) { pages.push_back(page); });
  return pages;
}

TEST(ToldWritesTest, BeforeItBeginsNothingIsGuardedAndNothingIsTold) {
  ToldWrites told;
  EXPECT_FALSE(told.tell(5));
  EXPECT_TRUE(taken(told).empty());
}

TEST(ToldWritesTest, EachIsTakenOnceInTheOrderOfPages) {
  ToldWrites told;
  ASSERT_TRUE(told.begin(kCapacity));
  for (const PageNumber page : {PageNumber{40'000}, PageNumber{63}, PageNumber{64}, PageNumber{63}}) {
    EXPECT_TRUE(told.tell(page));
  }
  EXPECT_EQ(taken(told), (std::vector<PageNumber>{63, 64, 40'000}));
  EXPECT_TRUE(taken(told).empty());
}

TEST(ToldWritesTest, WhatIsToldWhileItIsTakenIsNotLost) {
  ToldWrites told;
  ASSERT_TRUE(told.begin(kCapacity));
  std::atomic<bool> done = false;
  std::thread program([&] {
    for (PageNumber page = 0; page < kCapacity; ++page) (void)told.tell(page);
    done = true;
  });
  std::vector<PageNumber> all;
  for (bool last = false; !last;) {
    last = done;
    for (const PageNumber page : taken(told)) all.push_back(page);
  }
  program.join();
  EXPECT_EQ(all.size(), kCapacity);
}

}  // namespace
}  // namespace farheap::pager
