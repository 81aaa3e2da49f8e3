// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "heap/index_set.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace farheap::heap {
namespace {

TEST(IndexSet, FindsTheLowestLikeAStdSet) {
  constexpr std::size_t kLimit = 524'289;  // the chunks of 1 TiB
  IndexSet set(kLimit);
  ASSERT_TRUE(set.usable());
  std::set<std::size_t> model;
  std::mt19937 random(11);
  for (int step = 0; step < 200'000; ++step) {
    std::size_t index = random() % 4 == 0 ? random() % kLimit : random() % 300;
    if (random() % 2 == 0) {
      set.insert(index);
      model.insert(index);
    } else {
      set.erase(index);
      model.erase(index);
    }
    std::size_t from = random() % 3 == 0 ? random() % kLimit : random() % 400;
    auto expected = model.lower_bound(from);
    ASSERT_EQ(set.lowest_from(from), expected == model.end() ? IndexSet::kNone : *expected);
    ASSERT_EQ(set.lowest(), model.empty() ? IndexSet::kNone : *model.begin());
  }
}

TEST(IndexSet, TheLastIndexIsFoundAndNothingBehindIt) {
  for (std::size_t limit : {1u, 2u, 63u, 64u, 65u, 4096u, 4097u}) {
    IndexSet set(limit);
    set.insert(limit - 1);
    EXPECT_EQ(set.lowest(), limit - 1);
    EXPECT_EQ(set.lowest_from(limit), IndexSet::kNone);
    set.erase(limit - 1);
    EXPECT_EQ(set.lowest(), IndexSet::kNone);
  }
}

}  // namespace
}  // namespace farheap::heap
