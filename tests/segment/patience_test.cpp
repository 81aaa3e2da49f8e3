// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/patience.hpp"

#include <gtest/gtest.h>

namespace farheap::segment {
namespace {

// Looks until patience ends, with the same answer each time.
int looks(Patience& patience, const Patience::Look& look) {
  int count = 1;
  while (patience.lasts(look)) ++count;
  return count;
}

TEST(Patience, EndsSoonWhereNothingMoves) {
  Patience patience;
  EXPECT_EQ(looks(patience, {.held_bytes = 100}), Patience::kInVain + 1)
      << "the first look finds less than nothing known";
}

// On a busy device one batch of writes took longer than that, and a child was forked without room.
TEST(Patience, LastsWhileASlowDeviceWrites) {
  Patience patience;
  EXPECT_EQ(looks(patience, {.held_bytes = 100, .is_leaving = true}), Patience::kWhileLeaving + 1);
}

TEST(Patience, BeginsAnewWhenSomethingHasLeft) {
  Patience patience;
  for (std::uint64_t held = 100; held-- > 0;) {
    for (int i = 0; i < Patience::kInVain - 1; ++i) ASSERT_TRUE(patience.lasts({.held_bytes = held}));
  }
  EXPECT_LE(looks(patience, {.held_bytes = 0}), 2) << "as much as before is no progress";
}

TEST(Patience, ForOthersAloneIsLimited) {
  Patience patience;
  std::uint64_t held = 1'000'000;
  int count = 1;
  while (patience.lasts({.held_bytes = --held, .is_for_others = true})) ++count;
  EXPECT_EQ(count, Patience::kForOthers);
}

}  // namespace
}  // namespace farheap::segment
