// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/slot_table.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace farheap::segment {
namespace {

SlotTable make_table(std::uint64_t groups) {
  auto table = SlotTable::make(groups * kGroupSlots);
  EXPECT_TRUE(table.has_value());
  return std::move(*table);
}

TEST(SlotTable, ASlotIsFreeAgainAfterItsLastReference) {
  SlotTable table = make_table(4);
  const SlotGroup group = table.take_group(kNoGroup);
  const Slot slot = group * kGroupSlots + 7;
  ASSERT_TRUE(table.take(slot));
  EXPECT_FALSE(table.take(slot));
  EXPECT_FALSE(table.is_shared(slot));
  table.share(slot);
  EXPECT_TRUE(table.is_shared(slot));
  EXPECT_FALSE(table.release(slot));
  EXPECT_FALSE(table.take(slot));
  EXPECT_TRUE(table.release(slot));
  EXPECT_TRUE(table.take(slot));
}

TEST(SlotTable, AGroupIsTakenOnceAndOnlyWhenItIsEmpty) {
  SlotTable table = make_table(3);
  const SlotGroup first = table.take_group(kNoGroup);
  EXPECT_EQ(table.take_group(first), first + 1) << "the next one where that is free";
  const SlotGroup last = table.take_group(first + 1);
  EXPECT_NE(last, kNoGroup);
  EXPECT_EQ(table.take_group(last), kNoGroup) << "all are taken";

  ASSERT_TRUE(table.take(first * kGroupSlots));
  table.release_group(first);
  EXPECT_EQ(table.take_group(kNoGroup), kNoGroup) << "nobody owns it, but somebody reads there";
  EXPECT_TRUE(table.release(first * kGroupSlots));
  EXPECT_EQ(table.take_group(kNoGroup), first);
}

TEST(SlotTable, AGroupIsMineAloneOnlyWithoutOtherOwnersAndSlots) {
  SlotTable table = make_table(2);
  const SlotGroup group = table.take_group(kNoGroup);
  EXPECT_TRUE(table.is_empty_and_mine_alone(group));
  table.share_group(group);
  EXPECT_FALSE(table.is_empty_and_mine_alone(group));
  table.release_group(group);
  ASSERT_TRUE(table.take(group * kGroupSlots + 1));
  EXPECT_FALSE(table.is_empty_and_mine_alone(group));
  EXPECT_TRUE(table.release(group * kGroupSlots + 1));
  EXPECT_TRUE(table.is_empty_and_mine_alone(group));
}

// A simple reference: who holds how many references of which slot.
TEST(SlotTable, RandomCallsAgainstAReference) {
  constexpr std::uint64_t kGroups = 6;
  SlotTable table = make_table(kGroups);
  std::map<SlotGroup, unsigned> owners;
  std::map<Slot, unsigned> references;
  const auto used_in = [&](SlotGroup group) {
    return std::any_of(references.begin(), references.end(),
                       [&](const auto& one) { return one.second != 0 && one.first / kGroupSlots == group; });
  };
  std::mt19937 random(4);
  for (int step = 0; step < 30'000; ++step) {
    const auto group = static_cast<SlotGroup>(random() % kGroups);
    const auto slot = static_cast<Slot>(group * kGroupSlots + random() % 20);
    switch (random() % 7) {
      case 0: {
        const SlotGroup taken = table.take_group(random() % 2 != 0 ? group : kNoGroup);
        if (taken == kNoGroup) {
          for (SlotGroup one = 0; one < kGroups; ++one) {
            ASSERT_TRUE(owners[one] != 0 || used_in(one)) << "group " << one << " was free";
          }
          break;
        }
        ASSERT_EQ(owners[taken]++, 0u);
        ASSERT_FALSE(used_in(taken));
        break;
      }
      case 1:
        if (owners[group] != 0 && owners[group] < 5) table.share_group(group), ++owners[group];
        break;
      case 2:
        if (owners[group] != 0) table.release_group(group), --owners[group];
        break;
      case 3:
      case 4:
        if (owners[group] == 0) break;
        ASSERT_EQ(table.take(slot), references[slot] == 0);
        if (references[slot] == 0) references[slot] = 1;
        break;
      case 5:
        if (references[slot] != 0) table.share(slot), ++references[slot];
        break;
      default:
        if (references[slot] == 0) break;
        ASSERT_EQ(table.release(slot), references[slot] == 1);
        --references[slot];
    }
    ASSERT_EQ(table.references(slot), references[slot]);
    if (owners[group] == 1) {
      ASSERT_EQ(table.is_empty_and_mine_alone(group), !used_in(group));
    }
  }
}

// Each process takes groups and slots for itself alone; a slot that two hold at once would be written by both.
TEST(SlotTable, ProcessesNeverHoldTheSameSlot) {
  constexpr std::uint64_t kGroups = 64;
  constexpr int kProcesses = 4;
  SlotTable table = make_table(kGroups);
  auto held = os::ReservedArray<std::atomic<int>>::make(kGroups * kGroupSlots, true);
  ASSERT_TRUE(held.has_value());
  std::vector<pid_t> children;
  for (int number = 0; number < kProcesses; ++number) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    std::mt19937 random(static_cast<unsigned>(number));
    for (int round = 0; round < 3000; ++round) {
      const SlotGroup group = table.take_group(kNoGroup);
      if (group == kNoGroup) continue;
      std::vector<Slot> mine;
      for (int i = 0; i < 10; ++i) {
        const auto slot = static_cast<Slot>(group * kGroupSlots + random() % kGroupSlots);
        if (!table.take(slot)) continue;
        if ((*held)[slot].fetch_add(1) != 0) _exit(1);
        mine.push_back(slot);
      }
      // Given up in either order: the group first, or its slots.
      const bool early = random() % 2 != 0;
      if (early) table.release_group(group);
      for (const Slot slot : mine) {
        if ((*held)[slot].fetch_sub(1) != 1) _exit(2);
        if (!table.release(slot)) _exit(3);
      }
      if (!early) table.release_group(group);
    }
    _exit(0);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  for (std::uint64_t i = 0; i < kGroups; ++i) EXPECT_NE(table.take_group(kNoGroup), kNoGroup) << "all are free again";
}

}  // namespace
}  // namespace farheap::segment
