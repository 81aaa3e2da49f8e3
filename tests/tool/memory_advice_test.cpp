// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tool/memory_advice.hpp"

#include <gtest/gtest.h>
#include <farheap/store.hpp>

#include "store/kinds.hpp"
#include "store/measure.hpp"

namespace farheap::tool {
namespace {

std::vector<profile::StoreSpeed> measured(double seconds) {
  const auto store = open_store("mem:");
  EXPECT_TRUE(store.has_value());
  const auto found = store::measure_store(**store, {.bytes = 4 << 20, .seconds = seconds, .rounds = 3});
  EXPECT_TRUE(found.has_value());
  std::vector<profile::StoreSpeed> speed;
  for (const auto& one : *found) speed.push_back({one.name, one.unit, one.median, one.min, one.max});
  return speed;
}

// Profiles of a busy machine had no predictions: there was no time to measure all of the store, and nobody tried again.
TEST(MemoryAdvice, SpeedsAreNotEnoughWhereThereWasNoTimeToReadTheStore) {
  EXPECT_FALSE(tells_reading({}));
  EXPECT_FALSE(tells_reading(measured(1e-9)));
  EXPECT_TRUE(tells_reading(measured(60)));  // at most: it takes what it takes
}

}  // namespace
}  // namespace farheap::tool
