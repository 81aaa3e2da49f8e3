// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program is killed at random instants, and its heap opens at the last commit that returned, or the one in flight:
// the world of `./dev bench crash`, for a moment. FARHEAP_KILLS: so many times.
#include <gtest/gtest.h>

#include <cstdlib>

#include "crash/crash_world.hpp"
#include "heap_folder.hpp"
#include "tests/steps.hpp"

namespace farheap::testing {
namespace {

TEST(KeptHeapCrashTest, KilledWhileItIsCreatedItIsCreatedAgain) {
  const HeapFolder folder;
  crash::World world(folder.file(), 5);
  for (int i = 0; i < 30; ++i) ASSERT_EQ(world.kill_while_created(), "");
}

TEST(KeptHeapCrashTest, KilledAtAnyInstantItOpensAtACommit) {
  const HeapFolder folder;
  const char* const wanted = std::getenv("FARHEAP_KILLS");
  const int kills = wanted != nullptr ? std::atoi(wanted) : test::steps(40, 2);
  crash::World world(folder.file(), 4);
  for (int i = 0; i < kills; ++i) ASSERT_EQ(world.kill_once(), "") << "kill " << i;
  const crash::Counts& counts = world.counts();
  EXPECT_EQ(counts.at_the_last + counts.in_flight, counts.kills);
  EXPECT_GE(counts.commits, counts.kills / 2);  // every second kill waits for one
  EXPECT_GT(counts.objects_compared, 0u);
  EXPECT_GT(counts.snapshots_read, 0u);
}

}  // namespace
}  // namespace farheap::testing
